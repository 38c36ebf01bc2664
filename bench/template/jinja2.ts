import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const PYTHON = `
import json, sys, time
from datetime import datetime
import jinja2.ext
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2 import nodes
class Generation(Extension):
    tags = {"generation"}
    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)
    def _body(self, caller):
        return caller()
def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
def fail(message):
    raise jinja2.exceptions.TemplateError(message)
environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = fail
environment.globals["strftime_now"] = lambda format: datetime(2026, 11, 15, 12).strftime(format)
given = json.loads(sys.stdin.readline())
templates = {}
for name, source in given["templates"].items():
    try:
        templates[name] = environment.from_string(source)
    except Exception:
        continue
# One line asks for a round: how often to render which template. The answer is in processor time.
for line in sys.stdin:
    name, repeats = json.loads(line)
    try:
        render, variables = templates[name].render, given["variables"]
        start = time.process_time()
        for _ in range(repeats):
            text = render(**variables)
        answer = {"microseconds": (time.process_time() - start) / repeats * 1e6, "text": text}
    except Exception as problem:
        answer = {"problem": str(problem)}
    print(json.dumps(answer), flush=True)
`

/** What one round of renders took, or why there was none. */
export type Jinja2Answer =
  | { readonly microseconds: number; readonly text: string }
  | { readonly problem: string }

/** Jinja2 in a process of its own, ready to render on demand. */
export interface Jinja2 extends AsyncDisposable {
  /** Renders a template so often; microseconds of processor time per render, and the text. */
  measure(name: string, repeats: number): Promise<Jinja2Answer>
}

/** Starts a Python that has Jinja2; without one there is nothing to compare with. */
export async function openJinja2(
  templates: Readonly<Record<string, string>>,
  variables: object,
): Promise<Jinja2> {
  const child = spawn(process.env.ESPALIER_PYTHON ?? 'python3', ['-c', PYTHON], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(child, 'spawn')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  child.stdin.write(`${JSON.stringify({ templates, variables })}\n`)
  return {
    async measure(name, repeats) {
      child.stdin.write(`${JSON.stringify([name, repeats])}\n`)
      const { value, done } = await lines.next()
      if (done) {
        throw new Error('The Python with jinja2 ended; name one that has it in ESPALIER_PYTHON.')
      }
      return JSON.parse(value) as Jinja2Answer
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
