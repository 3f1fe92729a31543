"""Runs ONNX test cases through `agc check --cases`, in as many processes as there are cores. A process that ends early
counts as a crash of the case it was at; the rest goes on in another one.

  run("build/agc", [("m.onnx", "data"), ...])    a dict per case: status passed, failed, refused or crashed; reason
"""
import json
import os
import subprocess
import tempfile
import threading


def work(agc, queue, results, lock):
    while True:
        with lock:
            batch = [queue.pop() for _ in range(min(64, len(queue)))]
        if not batch:
            return
        while batch:
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write("".join(f"{model} {data}\n" for _, model, data in batch))
                file.flush()
                process = subprocess.run([agc, "check", "--cases", file.name], capture_output=True, text=True, check=False)
            lines = [json.loads(line) for line in process.stdout.splitlines() if line.endswith("}")]
            for (index, _, _), result in zip(batch, lines):
                results[index] = result
            batch = batch[len(lines):]
            if batch:
                results[batch[0][0]] = {"status": "crashed", "reason": f"exit code {process.returncode}: {process.stderr[-300:]}"}
                batch = batch[1:]


def run(agc, cases):
    queue = [(i, *case) for i, case in enumerate(cases)][::-1]
    results, lock = [None] * len(cases), threading.Lock()
    threads = [threading.Thread(target=work, args=(agc, queue, results, lock)) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def junit(path, suite, outcomes):
    """A JUnit file: (name, None or why it failed)."""
    from xml.sax.saxutils import quoteattr
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite name={quoteattr(suite)}>\n")
        for name, why in outcomes:
            inner = f"<failure message={quoteattr(why)}/>" if why else ""
            file.write(f"<testcase classname={quoteattr(suite)} name={quoteattr(name)}>{inner}</testcase>\n")
        file.write("</testsuite></testsuites>\n")
