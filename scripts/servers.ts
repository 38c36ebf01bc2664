// npm run servers: our policies against real inference servers, every token scored again.
import { appendFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Policy } from '../src/base/core/policy.ts'
import { openPolicy } from '../src/engine/policies/open-policy.ts'
import { openRenderer } from '../src/run/settings/model-source.ts'
import { openRecorder } from './servers/recorder.ts'
import { openTorch } from './servers/torch.ts'
import { tryChat } from './servers/try-chat.ts'
import { type FormsReport, tryForms } from './servers/try-forms.ts'
import { type ImagesReport, tryImages } from './servers/try-images.ts'
import { type RestartReport, tryRestart } from './servers/try-restart.ts'
import { type Apart, type Report, tryServer, ways } from './servers/try-server.ts'
import { tryWeights, type WeightsReport } from './servers/try-weights.ts'

const help = `npm run servers -- [--vllm URL] [--sglang URL] [--llama-cpp URL] [--chat URL] --model DIR [options]

Samples from servers that you started (docs/reference/servers.md says how, also on a CPU), scores every token
again with the server and with PyTorch, and prints a table of what was found. Servers that only chat
(--chat, such as transformers serve) give no token ids: they are asked for messages, and for a seed twice.

  --model DIR     the model that they serve: its tokenizer, and its weights for PyTorch
  --python PATH   a Python with torch and transformers; without one nothing is scored with PyTorch
  --served-model  the name under which they serve it, where they have to be told (transformers serve: DIR)
  --samples N     samples in each way: T=1, T=0.7, T=0.7 with cuts (default 8)
  --images        shows them images instead: sizes of several kinds, every token scored again; DIR is a model that
                  sees (scripts/servers/toy-vision.py makes a toy of the Qwen2-VL shape)
  --forms         asks for a forced call and for JSON of a schema instead: whether what comes has the form, and
                  its log-probabilities beside those of the whole distribution
  --weights DIR   another model of the same shape: loaded into each server as train does after a step,
                  scored with PyTorch, and the first one loaded again (docs/reference/weight-sync.md says which
                  flags servers need for that); needs --python
  --restart CMD   kills the server of --process while it samples, starts it again with this command, and counts
                  which samples came all the same
  --process PID   the leader of the server's process group (setsid vllm serve … & echo $!)
  --record FILE   writes what the servers answered as JSON lines, in the form of test/fixtures/servers
  --json          one JSON object per server`

const kinds = ['vllm', 'sglang', 'llama-cpp', 'chat'] as const

const { values } = parseArgs({
  options: {
    vllm: { type: 'string' },
    sglang: { type: 'string' },
    'llama-cpp': { type: 'string' },
    chat: { type: 'string' },
    model: { type: 'string' },
    'served-model': { type: 'string' },
    python: { type: 'string' },
    samples: { type: 'string', default: '8' },
    images: { type: 'boolean', default: false },
    forms: { type: 'boolean', default: false },
    weights: { type: 'string' },
    restart: { type: 'string' },
    process: { type: 'string' },
    record: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const asked = kinds.flatMap(kind => (values[kind] ? [{ kind, url: values[kind] }] : []))
const samples = Number(values.samples)
const lacksTorch = values.weights !== undefined && values.python === undefined
if (values.help || asked.length === 0 || !values.model || !(samples >= 1) || lacksTorch) {
  console.log(help)
  process.exit(values.help ? 0 : 2)
}

const renderer = await openRenderer(values.model)
const { tokenizer } = renderer
await using torch =
  values.python && !values.images ? await openTorch(values.python, values.model) : undefined
const reports: Report[] = []
const changes: WeightsReport[] = []
const seen: ImagesReport[] = []
const formed: FormsReport[] = []
for (const { kind, url } of asked) {
  await using recorder = await openRecorder(url)
  await using policy = await openPolicy(`${kind === 'chat' ? 'openai' : kind}:${recorder.url}`, {
    thread: false,
    retries: false,
    ...(values['served-model'] && { servedModel: values['served-model'] }),
  })
  if (values.images) await showImages(policy, kind)
  else if (values.forms) formed.push(...(await tryForms(policy, { kind, renderer, samples })))
  else await drawSamples(policy, kind)
  if (values.weights) changes.push(...(await changeWeights(policy, kind, values.weights)))
  if (values.record) {
    const lines = recorder.exchanges.map((each, index) =>
      JSON.stringify({ line: index + 1, server: kind, ...each }),
    )
    appendFileSync(values.record, `${lines.join('\n')}\n`)
  }
}
const restarts: RestartReport[] = []
if (values.restart && values.process) {
  const { kind, url } = asked[0]!
  const told = {
    kind,
    uri: `${kind}:${url}`,
    process: Number(values.process),
    command: values.restart,
  }
  restarts.push(await tryRestart(told, tokenizer.encode('The capital of France is')))
}
if (values.forms) console.table(formed)
else if (!values.json && !values.images) console.log(tableOf(reports))
if (!values.json && values.images) console.log(imagesTable(seen))
for (const report of restarts) {
  const { kind, samples: wanted, failed, away, retries } = report
  const came = `${kind}: killed and started again, away for ${away.toFixed(0)} s; ${wanted - failed.length} of ${wanted} samples came`
  const told = `${came}, ${retries} tries again${failed.map(each => `; ${each}`).join('')}`
  console.log(values.json ? JSON.stringify(report) : told)
}
for (const { kind, path, version, apart } of changes) {
  const told = `${kind}: ${path} as version ${version}, ${apart.toExponential(1)} from PyTorch`
  console.log(values.json ? JSON.stringify({ kind, path, version, apart }) : told)
}
const isBad = [...reports, ...restarts, ...seen].some(({ failed }) => failed.length > 0)
const isFree = formed.some(({ ended, fitting }) => fitting < ended || ended === 0)
const isApart = seen.some(each => !(Math.max(each.byServer, each.byTransformers ?? 0) <= 0.12))
process.exit(
  isBad || isApart || isFree || [...reports, ...changes].some(({ apart }) => apart > 0.12) ? 1 : 0,
)

async function drawSamples(policy: Policy, kind: (typeof kinds)[number]): Promise<void> {
  console.error(`${kind}: ${samples} samples in each of three ways …`)
  const tried = kind === 'chat' ? tryChat : tryServer
  const encode = (text: string): Int32Array => tokenizer.encode(text)
  const report = await tried(policy, { kind, samples, encode, torch })
  reports.push(report)
  if (values.json) console.log(JSON.stringify(report))
}

async function showImages(policy: Policy, kind: string): Promise<void> {
  if (!renderer.images) throw new Error(renderer.noImages)
  const { model = '', python } = values
  const report = await tryImages(policy, { kind, renderer, model, ...(python && { python }) })
  seen.push(report)
  if (values.json) console.log(JSON.stringify(report))
}

function imagesTable(all: readonly ImagesReport[]): string {
  const rows = all.map(each => [
    each.kind,
    `${each.samples - each.failed.length}/${each.samples}`,
    String(each.images),
    String(each.laidOut),
    String(each.scored),
    each.byServer.toExponential(1),
    each.byTransformers?.toExponential(1) ?? '-',
  ])
  const head = ['server', 'sampled', 'images', 'tokens of images', 'scored']
  const columns = [...head, 'most apart by itself', 'from transformers']
  const lines = [columns, columns.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`)
  const failures = all.flatMap(({ kind, failed }) => failed.map(each => `${kind}: ${each}`))
  return [...lines, ...failures].join('\n')
}

/** Loads other weights and then the first again, and compares each with PyTorch. */
async function changeWeights(policy: Policy, kind: string, other: string) {
  const prompt = tokenizer.encode('The capital of France is')
  const changed: WeightsReport[] = []
  for (const [version, path] of [other, values.model!].entries()) {
    await using own = await openTorch(values.python!, path)
    const told = { kind, path: resolve(path), version: version + 1, prompt, torch: own }
    changed.push(await tryWeights(policy, told))
  }
  return changed
}

function tableOf(all: readonly Report[]): string {
  const number = (value: number | undefined): string =>
    value === undefined ? '-' : value.toExponential(1)
  const both = (apart: Apart | undefined): string =>
    apart === undefined ? '-' : `${number(apart.mean)}, ${number(apart.most)}`
  const columns = Object.keys(ways)
  const rows = all.map(report => [
    report.kind,
    `${report.samples - report.failed.length}/${report.samples}`,
    String(report.tokens),
    String(report.unnumbered),
    both(report.byServer),
    ...columns.map(name => both(report.byTorch[name])),
    report.basis,
    report.repeatsSeeds ? 'repeat' : 'do not repeat',
  ])
  const head = [
    'server',
    'sampled',
    'tokens',
    'without number',
    'scored by itself',
    ...columns.map(name => `PyTorch, ${name}`),
    'numbers at T=0.7',
    'seeds',
  ]
  const lines = [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`)
  const failures = all.flatMap(({ kind, failed }) => failed.map(each => `${kind}: ${each}`))
  return [...lines, ...failures].join('\n')
}
