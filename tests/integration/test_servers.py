"""The servers the other tests stand on."""

import psycopg
import redis
from support.servers import PostgresServer, RedisServer


def test_redis_answers_and_comes_back_empty_after_a_restart() -> None:
    server = RedisServer()
    try:
        server.start()
        redis.Redis.from_url(server.url).set("word", "kept?")
        server.stop()
        server.start()

        assert redis.Redis.from_url(server.url).get("word") is None
    finally:
        server.remove()


def test_postgres_answers_from_a_database_of_its_own(postgres_server: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        (name,) = connection.execute("SELECT current_database()").fetchone() or ("",)

    assert str(name).startswith("test_")
