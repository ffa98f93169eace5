# One image for every role; the role is the command. Built without a key or a password in it.
ARG PYTHON_IMAGE=python:3.12.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_CONSTRAINT=/src/constraints.txt
WORKDIR /src
COPY constraints.txt pyproject.toml ./
# Outside /usr: the sandbox shows /usr to agents, and they need not see the service's code.
RUN python -m venv /opt/assay
# EXTRAS=[claude-code] adds the Claude Code command line: 370 MB.
ARG EXTRAS=
# First what Assay stands on, with empty packages in its place: an edit of the code installs the code alone.
RUN mkdir schemas service api workers cli simulator && touch README.md LICENSE \
    && /opt/assay/bin/pip install ".${EXTRAS}" && /opt/assay/bin/pip uninstall --yes skill-assay
COPY README.md LICENSE ./
COPY schemas schemas
COPY service service
COPY api api
COPY workers workers
COPY cli cli
COPY simulator simulator
RUN /opt/assay/bin/pip install --no-deps . && /opt/assay/bin/python -m compileall -q /opt/assay

FROM ${PYTHON_IMAGE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 assay \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/assay --shell /usr/sbin/nologin assay \
    && install -d -o 10001 -g 10001 -m 0750 /var/lib/assay
COPY --from=build /opt/assay /opt/assay
ENV PATH=/opt/assay/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    ASSAY_DATA=/var/lib/assay
USER 10001:10001
WORKDIR /var/lib/assay
ENTRYPOINT ["assay"]
CMD ["--help"]
