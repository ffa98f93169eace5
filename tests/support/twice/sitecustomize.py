"""Put on PYTHONPATH, makes every process of a fleet publish each message twice: a broker is allowed to do that."""

import sys

if any("workers.process" in part or part == "-m" for part in sys.orig_argv):
    from service.queue import Broker

    publish_once = Broker._publish

    def publish_twice(self, message, producer):  # type: ignore[no-untyped-def]
        publish_once(self, message, producer)
        publish_once(self, message, producer)

    Broker._publish = publish_twice  # type: ignore[method-assign]
