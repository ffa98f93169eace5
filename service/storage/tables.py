"""The tables. Times are seconds since 1970 by the database's clock; every column says what it is for.

teams ─┬─ skill_versions ─┐
       ├─ suites ── cases ┼─ batches ── runs ─┬─ attempts
       │                  │     └┬┘           └─ artifacts ─(sha256)─ blobs
       └──────────────────┴─ comparisons
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows only in INTEGER columns.
RowId = BigInteger().with_variant(Integer, "sqlite")

teams = Table(
    "teams",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id"),
    Column("name", String(200), nullable=False, unique=True, comment="what people call the team"),
    Column("weight", Float, nullable=False, server_default="1", comment="share of the window beside other teams"),
    Column("max_open", Integer, comment="most runs of the team open at once; null is no cap"),
    Column("created_at", Float, nullable=False, comment="when it was made"),
)

skill_versions = Table(
    "skill_versions",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is"),
    Column("skill", String(200), nullable=False, comment="the skill's name, shared by its versions"),
    Column("number", Integer, nullable=False, comment="0, 1, ...: the label is v<number>"),
    Column("digest", String(64), nullable=False, comment="sha256 over the sorted list of its files"),
    Column("parent_id", ForeignKey("skill_versions.id"), comment="the version that was newest before this one"),
    Column("git_hash", String(64), comment="HEAD of the skill's repository at submit, if it has one"),
    Column("description", Text, nullable=False, server_default="", comment="from the front matter of SKILL.md"),
    Column("files", JSON, nullable=False, comment="path -> {sha256, size, executable} of every file"),
    Column("created_at", Float, nullable=False, comment="when it was first submitted"),
    UniqueConstraint("team_id", "skill", "number"),
    UniqueConstraint("team_id", "skill", "digest"),
)

suites = Table(
    "suites",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is"),
    Column("digest", String(64), nullable=False, comment="sha256 of the raw bytes, which are kept as a blob"),
    Column("dialect", String(40), nullable=False, comment="how the file was written; results are written alike"),
    Column("body", Text, nullable=False, comment="the canonical suite without its cases, as JSON text"),
    Column("case_count", Integer, nullable=False, comment="how many cases"),
    Column("created_at", Float, nullable=False, comment="when it was first submitted"),
    UniqueConstraint("team_id", "digest", "dialect"),
)

cases = Table(
    "cases",
    metadata,
    Column("suite_id", ForeignKey("suites.id"), primary_key=True, comment="its suite"),
    Column("position", Integer, primary_key=True, comment="0, 1, ... in the order of the file"),
    Column("label", String(200), nullable=False, comment="the id as text, for people"),
    Column("body", Text, nullable=False, comment="the canonical case, as JSON text"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is"),
    Column("suite_id", ForeignKey("suites.id"), nullable=False, comment="what is asked"),
    Column("skill_version_id", ForeignKey("skill_versions.id"), nullable=False, comment="the skill under test"),
    Column("control_version_id", ForeignKey("skill_versions.id"), comment="the other version of new_skill/old_skill"),
    Column("iteration", Integer, nullable=False, comment="1, 2, ...: the skill's batches, numbered"),
    Column("state", String(20), nullable=False, comment="accepted, running, paused, aggregating, finished, cancelled"),
    Column("settings", JSON, nullable=False, comment="name -> {value, source}: what is used and who said so"),
    Column("inputs", JSON, nullable=False, comment="case position -> [{name, sha256, size}]: staged input files"),
    Column("priority", Integer, nullable=False, server_default="0", comment="higher goes first inside its team"),
    Column("max_open", Integer, comment="most runs of the batch open at once; null is no cap"),
    Column("cancelled_at", Float, comment="when somebody cancelled it"),
    Column("fence", Integer, nullable=False, server_default="0", comment="raised by every claim of the aggregate"),
    Column("lease_until", Float, comment="until when an aggregator holds it"),
    Column("dispatched_at", Float, comment="when the aggregate message was sent"),
    Column("not_before", Float, comment="the aggregate waits until then before it is tried again"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="claims of the aggregate so far"),
    Column("aggregate", JSON, comment="name -> {sha256, size}: the files of the finished aggregate"),
    Column("error", Text, comment="why the aggregate could not be built, if so"),
    Column("regrade_of", String(26), comment="the batch whose artifacts its runs were given; null if there is none"),
    Column("idempotency_key", String(200), comment="the submitter's own key, once per team"),
    Column("request_digest", String(64), comment="sha256 of the submit, to tell a repeat from another one"),
    Column("created_at", Float, nullable=False, comment="when it was accepted"),
    Column("started_at", Float, comment="when its first run was admitted"),
    Column("finished_at", Float, comment="when it was finished or cancelled"),
    UniqueConstraint("team_id", "idempotency_key"),
    Index("ix_batches_team", "team_id", "id"),
    Index("ix_batches_skill", "skill_version_id"),
    Index(
        "ix_batches_live",
        "state",
        sqlite_where=text("state IN ('accepted', 'running', 'paused', 'aggregating')"),
        postgresql_where=text("state IN ('accepted', 'running', 'paused', 'aggregating')"),
    ),
)

OPEN = text("stage IN ('execute', 'check', 'judge')")
WAITING = text("stage = 'waiting'")
UNSETTLED = text("stage <> 'settled'")

runs = Table(
    "runs",
    metadata,
    Column("id", RowId, primary_key=True, comment="what messages carry"),
    Column("batch_id", ForeignKey("batches.id"), nullable=False, comment="its batch"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is, to count without a join"),
    Column("position", Integer, nullable=False, comment="order of admission inside the batch"),
    Column("case_position", Integer, nullable=False, comment="which case of the suite"),
    Column("case_label", String(200), nullable=False, comment="the case's id as text"),
    Column("configuration", String(40), nullable=False, comment="the arm: with_skill, without_skill, ..."),
    Column("role", String(10), nullable=False, comment="treatment, control, or aside: in no comparison"),
    Column("run_number", Integer, nullable=False, comment="1, 2, ... within case and configuration"),
    Column("skill_version_id", ForeignKey("skill_versions.id"), comment="the skill of its arm; null without one"),
    Column("stage", String(10), nullable=False, comment="waiting, execute, check, judge, settled"),
    Column("entry", String(10), nullable=False, server_default="execute", comment="where admission or retry starts it"),
    Column("outcome", String(20), comment="how it ended; null until settled"),
    Column("error", Text, comment="one sentence for people when it ended without a score"),
    Column("fence", Integer, nullable=False, server_default="0", comment="raised by every claim; a save names it"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="claims of the present stage so far"),
    Column("lease_until", Float, comment="until when a worker holds it; null when nobody does"),
    Column("dispatched_at", Float, comment="when its message was sent; null when none is under way"),
    Column("not_before", Float, comment="handed back: not to be sent again before then"),
    Column("worker", String(200), comment="who claimed it last"),
    Column("facts", JSON, comment="small results for lists: pass_rate, gate, tokens, seconds, cost"),
    Column("started_at", Float, comment="when it was first claimed"),
    Column("settled_at", Float, comment="when it ended"),
    UniqueConstraint("batch_id", "position"),
    Index("ix_runs_waiting", "batch_id", "position", sqlite_where=WAITING, postgresql_where=WAITING),
    Index("ix_runs_case", "batch_id", "case_position"),
    Index("ix_runs_open", "stage", "dispatched_at", sqlite_where=OPEN, postgresql_where=OPEN),
    Index("ix_runs_unsettled", "batch_id", sqlite_where=UNSETTLED, postgresql_where=UNSETTLED),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", RowId, primary_key=True, comment="order of writing"),
    Column("run_id", ForeignKey("runs.id"), nullable=False, index=True, comment="its run"),
    Column("stage", String(10), nullable=False, comment="execute, check or judge"),
    Column("fence", Integer, nullable=False, comment="the claim it belongs to"),
    Column("worker", String(200), comment="who tried"),
    Column("started_at", Float, comment="when it was claimed"),
    Column("ended_at", Float, nullable=False, comment="when it was saved, failed or given up"),
    Column("result", String(20), nullable=False, comment="done, handed_back, busy, lost, or the outcome it ended in"),
    Column("error", Text, comment="one sentence, if it failed"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, comment="its run"),
    Column("name", String(1024), primary_key=True, comment="transcript.md, outputs/report.md, ..."),
    Column("sha256", String(64), nullable=False, comment="what it contains"),
    Column("size", BigInteger, nullable=False, comment="bytes"),
    Column("stage", String(10), nullable=False, comment="the stage that made it"),
)

blobs = Table(
    "blobs",
    metadata,
    Column("sha256", String(64), primary_key=True, comment="digest of the bytes"),
    Column("size", BigInteger, nullable=False, comment="bytes"),
    Column("data", LargeBinary, nullable=False, comment="the bytes"),
)

# Not of this call alone: requests that waited in vain have no row, and their waiting is to be counted too.
LIMITER_WAIT = "of waiting for the limiter in this process, for this model, since its row before"
model_calls = Table(
    "model_calls",
    metadata,
    Column("id", RowId, primary_key=True, comment="order of writing"),
    Column("team_id", String(200), nullable=False, comment="who pays"),
    Column("batch_id", String(26), comment="the batch it was for, or the comparison"),
    Column("run_id", BigInteger, comment="the run it was for"),
    Column("purpose", String(20), nullable=False, comment="execute, judge, compare or analyze"),
    Column("model", String(200), nullable=False, comment="the model asked"),
    Column("answered_by", String(200), comment="the model that answered"),
    Column("input_tokens", BigInteger, comment="as billed"),
    Column("output_tokens", BigInteger, comment="as billed"),
    Column("cache_read_tokens", BigInteger, comment="as billed"),
    Column("cache_write_tokens", BigInteger, comment="as billed"),
    Column("cost_usd", Float, comment="null: the price is not known"),
    Column("seconds", Float, nullable=False, comment="how long it took"),
    Column("waited_seconds", Float, nullable=False, server_default="0", comment=LIMITER_WAIT),
    Column("request_id", String(200), comment="the provider's name for it"),
    Column("simulated", Integer, nullable=False, comment="1: a simulator answered"),
    Column("attempts", Integer, nullable=False, comment="HTTP requests it took"),
    Column("lane", String(10), nullable=False, comment="direct, or batch at half the price"),
    Column("error", Text, comment="short name of what went wrong"),
    Column("created_at", Float, nullable=False, comment="when it ended"),
    Index("ix_model_calls_batch", "batch_id"),
    Index("ix_model_calls_team", "team_id", "created_at"),
)

judgements = Table(
    "judgements",
    metadata,
    Column("id", String(64), primary_key=True, comment="digest of material, questions, prompt, model and seat"),
    Column("model", String(200), nullable=False, comment="who judged"),
    Column("prompt_version", String(200), nullable=False, comment="by which words"),
    Column("body", Text, nullable=False, comment="JSON: verdict, tokens, cost"),
    Column("created_at", Float, nullable=False, comment="when it was kept"),
)

LANE_WAITING = text("state = 'waiting'")
LANE_OPEN = text("state IN ('sending', 'sent')")

lane_requests = Table(
    "lane_requests",
    metadata,
    Column("id", String(64), primary_key=True, comment="the judgement's id, and the provider's custom_id"),
    Column("run_id", BigInteger, nullable=False, comment="whose judgement it is"),
    Column("batch_id", String(26), nullable=False, comment="to cancel by"),
    Column("team", String(200), nullable=False, comment="who pays"),
    Column("model", String(200), nullable=False, comment="the judge asked"),
    Column("seat", Integer, nullable=False, comment="its number in the panel"),
    Column("repeat", Integer, nullable=False, comment="1 for a judgement made once more"),
    Column("size", BigInteger, nullable=False, comment="bytes of the body, about"),
    Column("state", String(12), nullable=False, comment="waiting, sending, sent, answered, returned, ..."),
    Column("shipment_id", String(26), index=True, comment="the shipment it is in"),
    Column("offered_at", Float, nullable=False, comment="when it was put in the lane"),
    Column("answer", Text, comment="JSON: what came back"),
    Column("error", Text, comment="why nothing usable came back"),
    Index("ix_lane_requests_waiting", "offered_at", sqlite_where=LANE_WAITING, postgresql_where=LANE_WAITING),
    Index("ix_lane_requests_batch", "batch_id"),
)

shipments = Table(
    "shipments",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("provider_id", String(200), unique=True, comment="the provider's message batch"),
    Column("state", String(12), nullable=False, comment="sending, sent, collected, lost"),
    Column("created_at", Float, nullable=False, comment="when its requests were packed"),
    Column("lease_until", Float, nullable=False, comment="until when somebody works on it"),
    Column("polled_at", Float, comment="when the provider was asked last"),
    Column("is_cancelled", Integer, nullable=False, server_default="0", comment="the provider was asked to stop"),
    Column("is_found", Integer, nullable=False, server_default="0", comment="1: taken for ours by its size"),
    Column("rejected", JSON, nullable=False, comment="provider batches that turned out not to be this one"),
    Index("ix_shipments_open", "state", sqlite_where=LANE_OPEN, postgresql_where=LANE_OPEN),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whom it lets in"),
    Column("name", String(200), nullable=False, comment="what people call it"),
    Column("prefix", String(20), nullable=False, comment="its first characters, to recognise it"),
    Column("digest", String(64), nullable=False, unique=True, comment="sha256 of the token; the token is not kept"),
    Column("scopes", JSON, nullable=False, comment="what it may: submit, read, admin"),
    Column("created_at", Float, nullable=False, comment="when it was made"),
    Column("expires_at", Float, comment="after this it lets nobody in; null never"),
    Column("revoked_at", Float, comment="when somebody took it back"),
    Column("last_used_at", Float, comment="when it was last shown, to the minute"),
    Index("ix_tokens_team", "team_id", "id"),
)

uploads = Table(
    "uploads",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is"),
    Column("skill_version_id", ForeignKey("skill_versions.id"), nullable=False, comment="the version it holds"),
    Column("sha256", String(64), nullable=False, comment="the archive, kept as a blob with its evals/"),
    Column("size", BigInteger, nullable=False, comment="bytes of the archive"),
    Column("name", String(200), nullable=False, comment="the name of the file that was sent"),
    Column("created_at", Float, nullable=False, comment="when it came"),
    Index("ix_uploads_version", "skill_version_id", "id"),
)

reviews = Table(
    "reviews",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True, comment="the run a person looked at"),
    Column("author", String(200), primary_key=True, comment="who looked"),
    Column("batch_id", ForeignKey("batches.id"), nullable=False, index=True, comment="the run's batch"),
    Column("feedback", Text, nullable=False, comment="what they say; empty is: nothing to complain about"),
    Column("created_at", Float, nullable=False, comment="when it was first said"),
    Column("updated_at", Float, nullable=False, comment="when it was last changed"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, index=True, comment="whose batches it tells about"),
    Column("url", Text, nullable=False, comment="where it tells"),
    Column("secret", String(100), nullable=False, comment="signs what is sent; needed in clear to do so"),
    Column("created_at", Float, nullable=False, comment="batches that ended before are not told"),
    Column("deleted_at", Float, comment="when somebody took it back"),
)

DUE = text("state = 'due'")

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id; the receiver sees it, to tell a repeat"),
    Column("webhook_id", ForeignKey("webhooks.id"), nullable=False, comment="where it goes"),
    Column("batch_id", ForeignKey("batches.id"), nullable=False, comment="the batch that ended"),
    Column("ended_at", Float, nullable=False, comment="which end: a batch that was retried ends again"),
    Column("state", String(12), nullable=False, comment="due, delivered, given_up"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="how often it was tried"),
    Column("not_before", Float, nullable=False, comment="when it is tried next; also the lease of who tries"),
    Column("error", Text, comment="what the last attempt met"),
    Column("created_at", Float, nullable=False, comment="when it became due"),
    Column("delivered_at", Float, comment="when the receiver took it"),
    UniqueConstraint("webhook_id", "batch_id", "ended_at"),
    Index("ix_deliveries_due", "not_before", sqlite_where=DUE, postgresql_where=DUE),
)

UNENDED = text("state IN ('accepted', 'running')")

comparisons = Table(
    "comparisons",
    metadata,
    Column("id", String(26), primary_key=True, comment="opaque id that sorts by time"),
    Column("team_id", ForeignKey("teams.id"), nullable=False, comment="whose it is"),
    Column("suite_id", ForeignKey("suites.id"), nullable=False, comment="what both sides were asked"),
    Column("challenger_batch_id", ForeignKey("batches.id"), nullable=False, comment="the batch of the new side"),
    Column("challenger_configuration", String(40), nullable=False, comment="its arm in that batch"),
    Column("challenger_version_id", ForeignKey("skill_versions.id"), comment="its skill; null without one"),
    Column("challenger", String(250), nullable=False, comment="what people call the new side"),
    Column("champion_batch_id", ForeignKey("batches.id"), nullable=False, comment="the batch of the old side"),
    Column("champion_configuration", String(40), nullable=False, comment="its arm in that batch"),
    Column("champion_version_id", ForeignKey("skill_versions.id"), comment="its skill; null without one"),
    Column("champion", String(250), nullable=False, comment="what people call the old side"),
    Column("state", String(20), nullable=False, comment="accepted, running, finished, failed"),
    Column("settings", JSON, nullable=False, comment="judge_model, analysis, max_cost_usd, max_tokens"),
    Column("fence", Integer, nullable=False, server_default="0", comment="raised by every claim"),
    Column("lease_until", Float, comment="until when a judge holds it"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="claims so far that brought nothing"),
    Column("dispatched_at", Float, comment="when its message was sent"),
    Column("not_before", Float, comment="handed back: not to be sent again before then"),
    Column("worker", String(200), comment="who claimed it last"),
    Column("files", JSON, comment="name -> {sha256, size}: what it came to"),
    Column("assignment", JSON, comment="file -> {A, B}: who was who; kept apart from the files, which are blind"),
    Column("result", String(10), comment="won, lost or tie, from the challenger's side"),
    Column("error", Text, comment="why it failed, if so"),
    Column("created_at", Float, nullable=False, comment="when it was accepted"),
    Column("started_at", Float, comment="when it was first claimed"),
    Column("finished_at", Float, comment="when it was finished or failed"),
    Index("ix_comparisons_team", "team_id", "id"),
    Index("ix_comparisons_challenger", "challenger_version_id"),
    Index("ix_comparisons_champion", "champion_version_id"),
    Index("ix_comparisons_unended", "state", sqlite_where=UNENDED, postgresql_where=UNENDED),
)
