"""The Celery app and `send`: messages carry an id and words for people, never data."""

from collections.abc import Sequence
from typing import Any

from celery import Celery
from kombu import Queue as KombuQueue
from kombu.exceptions import KombuError

from service import log
from service.errors import BadInput, Unavailable
from service.settings import Settings
from service.storage.rows import Message

QUEUES = ("execute", "check", "judge", "aggregate", "control")
# Comparing is a judge's work: it has a task of its own and no queue of its own.
_QUEUE_OF = {"compare": "judge"}
MEMORY = "memory://"
_EPOCH_KEY = "assay:epoch"
# What clients of brokers raise when the broker is away; none of them shares a base with the others.
_TROUBLE = (OSError, KombuError, EOFError, AttributeError)


def make_app(settings: Settings) -> Celery:
    """A Celery app of its own; in one process every worker needs one."""
    broker = settings.broker_url or MEMORY
    app = Celery("assay", broker=broker, set_as_current=False)
    app.conf.update(
        task_queues=[KombuQueue(name) for name in QUEUES],
        task_default_queue="control",
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_publish_retry=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(broker),
    )
    if broker.startswith("amqp"):
        app.conf.update(task_default_queue_type="quorum", task_queues=[_quorum(name) for name in QUEUES])
    return app


def _quorum(name: str) -> KombuQueue:
    return KombuQueue(name, queue_arguments={"x-queue-type": "quorum"})


def _transport_options(broker: str) -> dict[str, Any]:
    if broker.startswith("redis"):
        # A message taken lives in its worker alone: keeping it in Redis until it is acknowledged was half of a worker's
        # work, loses messages all the same, and starts long tasks twice. Recovery finds what a dead worker held.
        return {"ack_emulation": False, "socket_connect_timeout": 3, "socket_keepalive": True}
    if broker == MEMORY:
        return {"polling_interval": 0.01}
    return {}


class Broker:
    """Sends nudges; a broker that is away costs time, never work, so sending never fails."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app = make_app(settings)

    def send(self, messages: Sequence[Message]) -> None:
        """Publish after the commit that made them true; what is lost here is found again by recovery."""
        if not messages:
            return
        try:
            with self._app.producer_pool.acquire(block=True) as producer, producer.batch(1_000):
                for message in messages:
                    self._publish(message, producer)
        except _trouble() as error:
            log.warning("messages not sent, recovery will", count=len(messages), reason=type(error).__name__)

    def refill(self) -> None:
        """Ask the control worker to admit runs now instead of at its next look around."""
        self.send([Message("control", "", "")])

    def _publish(self, message: Message, producer: Any) -> None:
        arguments = {} if message.stage == "control" else {"id": message.id}
        self._app.send_task(
            f"assay.{'refill' if message.stage == 'control' else message.stage}",
            kwargs=arguments,
            queue=_QUEUE_OF.get(message.stage, message.stage),
            producer=producer,
            kwargsrepr=message.label or "{}",
            argsrepr="()",
        )

    def depth(self, queue: str) -> int | None:
        """How many messages wait in a queue; None if the broker does not say."""
        try:
            with self._app.connection_for_read() as connection, connection.channel() as channel:
                return int(channel.queue_declare(queue=queue, passive=True).message_count)
        except _trouble():
            return None
        except Exception as error:  # noqa: BLE001  a queue nobody declared yet is a channel error of the transport's own kind
            log.info("queue depth unknown", queue=queue, reason=type(error).__name__)
            return None

    def came_back_empty(self) -> bool:
        """Whether Redis lost everything since the last look: then our epoch key is gone, and is set again."""
        if not (self._settings.broker_url or "").startswith("redis"):
            return False
        import redis

        try:
            with redis.Redis.from_url(
                self._settings.broker_url or "", socket_connect_timeout=3, socket_timeout=3
            ) as client:
                return bool(client.set(_EPOCH_KEY, "1", nx=True))
        except redis.RedisError:
            return False

    def check(self) -> None:
        """One clear sentence when the broker cannot be used."""
        url = self._app.connection_for_write().as_uri().replace("://:**@", "://")
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, timeout=3)
        except (KeyError, ImportError, ValueError) as error:
            raise BadInput(f"the broker URL {url} cannot be used; use redis://host:port/0 or amqp://host") from error
        except _trouble() as error:
            raise Unavailable(
                f"the broker at {url} does not answer; check ASSAY_BROKER_URL and that it runs"
            ) from error


def _trouble() -> tuple[type[BaseException], ...]:
    import redis
    from amqp.exceptions import AMQPError

    return (*_TROUBLE, redis.RedisError, AMQPError)
