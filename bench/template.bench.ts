import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Template as PeerTemplate } from '@huggingface/jinja'
import { compileTemplate } from '../src/jinja/template.ts'

const folder = fileURLToPath(new URL('../../shared/data/chat-templates', import.meta.url))

/** Rounds per template, of which the fastest counts: others may be using the machine. */
const ROUNDS = 12

const tool = (name: string, properties: object): object => ({
  type: 'function',
  function: {
    name,
    description: `Calls ${name} for the customer's order.`,
    parameters: { type: 'object', properties, required: Object.keys(properties).slice(0, 1) },
  },
})

const call = (id: string, name: string, input: object): object => ({
  id,
  type: 'function',
  function: { name, arguments: input },
})

/** Seven messages with tools, as one turn of an agent sees them. */
const conversation = {
  messages: [
    { role: 'system', content: 'You are a helpful assistant of a shop. Be brief and exact.' },
    { role: 'user', content: 'Where is my order #W2520? It was due yesterday.' },
    {
      role: 'assistant',
      content: '',
      reasoning_content: 'I should look the order up first.',
      tool_calls: [call('abcdefgh1', 'get_order', { order_id: '#W2520', verbose: true })],
    },
    {
      role: 'tool',
      tool_call_id: 'abcdefgh1',
      name: 'get_order',
      content: '{"status": "in transit", "total": 34.03, "carrier": "UPS"}',
    },
    { role: 'assistant', content: 'It is in transit with UPS.', reasoning_content: 'Found it.' },
    { role: 'user', content: 'Then cancel it, please.' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [call('abcdefgh2', 'cancel_order', { order_id: '#W2520', reason: 'too late' })],
    },
  ],
  tools: [
    tool('get_order', {
      order_id: { type: 'string', description: 'The id of the order.' },
      verbose: { type: 'boolean', description: 'Whether to give every detail.' },
    }),
    tool('cancel_order', {
      order_id: { type: 'string', description: 'The id of the order.' },
      reason: { type: 'string', enum: ['too late', 'no longer needed'] },
    }),
  ],
  add_generation_prompt: true,
  bos_token: '<s>',
  eos_token: '<|im_end|>',
}

const clock = (): Date => new Date(2026, 10, 15, 12)

/** Microseconds per render: the fastest of several rounds, after the compiler has settled. */
function measure(render: () => unknown): number {
  for (let warm = 0; warm < 300; warm++) render()
  const single = performance.now()
  render()
  const repeats = Math.max(5, Math.min(400, Math.round(6 / (performance.now() - single))))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    for (let index = 0; index < repeats; index++) render()
    best = Math.min(best, (performance.now() - start) / repeats)
  }
  return best * 1000
}

const attempt = (work: () => number): number | undefined => {
  try {
    return work()
  } catch {
    return undefined
  }
}

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
given = json.load(sys.stdin)
answers = {}
for name, source in given["templates"].items():
    try:
        template = environment.from_string(source)
        text = template.render(**given["variables"])
    except Exception:
        continue
    for _ in range(20):
        template.render(**given["variables"])
    start = time.perf_counter()
    template.render(**given["variables"])
    repeats = max(5, min(400, round(0.006 / (time.perf_counter() - start))))
    best = 1e9
    for _ in range(given["rounds"]):
        start = time.perf_counter()
        for _ in range(repeats):
            template.render(**given["variables"])
        best = min(best, (time.perf_counter() - start) / repeats)
    answers[name] = {"microseconds": best * 1e6, "text": text}
print(json.dumps(answers))
`

type PythonAnswers = Record<string, { microseconds: number; text: string }>

/** Jinja2's figures in the same run, where there is a Python that has it. */
function measurePython(sources: Record<string, string>): PythonAnswers | undefined {
  const input = JSON.stringify({ templates: sources, variables: conversation, rounds: ROUNDS })
  const { stdout, status } = spawnSync(process.env.ESPALIER_PYTHON ?? 'python3', ['-c', PYTHON], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  return status === 0 ? (JSON.parse(stdout) as PythonAnswers) : undefined
}

const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[sorted.length >> 1] ?? Number.NaN
}

const round = (value: number): number => Math.round(value * 100) / 100

/** Chat templates: microseconds per render, against Jinja2 and @huggingface/jinja in the same run. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  if (!existsSync(folder)) throw new Error(`The chat templates to measure are not at ${folder}.`)
  const sources: Record<string, string> = {}
  for (const file of readdirSync(folder).filter(name => name.endsWith('.jinja'))) {
    sources[file.replace('.jinja', '')] = readFileSync(`${folder}/${file}`, 'utf8')
  }
  const python = measurePython(sources)
  const templates: Record<string, object> = {}
  const toJinja2: number[] = []
  const toPeer: number[] = []
  const wrong: string[] = []
  for (const [name, source] of Object.entries(sources)) {
    const template = compileTemplate(source)
    const ours = attempt(() => measure(() => template.render(conversation, { clock }).text))
    if (ours === undefined) continue
    const reference = python?.[name]
    const text = template.render(conversation, { clock }).text
    if (reference && reference.text !== text) wrong.push(name)
    const peer = attempt(() => {
      const other = new PeerTemplate(source)
      return measure(() => other.render(conversation))
    })
    if (reference) toJinja2.push(ours / reference.microseconds)
    if (peer !== undefined) toPeer.push(ours / peer)
    templates[name] = {
      microseconds: round(ours),
      ...(reference && { jinja2: round(reference.microseconds) }),
      ...(peer !== undefined && { huggingface: round(peer) }),
    }
    if (!json) {
      const other = (value: number | undefined): string => (value?.toFixed(0) ?? '-').padStart(7)
      console.log(
        `${name.padEnd(52)} ${ours.toFixed(1).padStart(8)} µs   jinja2 ${other(reference?.microseconds)}   @huggingface/jinja ${other(peer)}`,
      )
    }
  }
  const summary = {
    ...(python && {
      ratioToJinja2: { median: round(median(toJinja2)), worst: round(Math.max(...toJinja2)) },
    }),
    ratioToHuggingface: { median: round(median(toPeer)), worst: round(Math.max(...toPeer)) },
    differentText: wrong,
  }
  if (!json) console.log(JSON.stringify(summary))
  return { ...summary, templates }
}
