"""Run the handler in several threads, fed by one dispatcher."""
import queue
import threading

from relay_queue.dispatcher import Dispatcher


class WorkerPool:
    def __init__(self, path, handler, workers=8, lease_seconds=45.0):
        self.path = path
        self.handler = handler
        self.workers = workers
        self.lease_seconds = lease_seconds
        self.errors = []
        self._stop = threading.Event()
        self._threads = []

    def start(self, until_empty=False):
        self._dispatcher = Dispatcher(self.path, self.lease_seconds, until_empty)
        self._dispatcher.start()
        for _ in range(self.workers):
            thread = threading.Thread(target=self._guard)
            self._threads.append(thread)
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._dispatcher.stopping.set()
        self._dispatcher.join()

    def run_until_empty(self):
        self.start(until_empty=True)
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _guard(self):
        try:
            self._work()
        except Exception as error:
            self.errors.append(error)
            self._stop.set()

    def _work(self):
        while not self._stop.is_set():
            try:
                job = self._dispatcher.ready.get(timeout=0.05)
            except queue.Empty:
                if self._dispatcher.is_alive():
                    continue
                return
            self.handler(job)
            self._dispatcher.finish(job)
