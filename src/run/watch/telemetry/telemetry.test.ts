import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { openCountingPolicy } from '../../../../test/counting-policy.ts'
import { plainTree } from '../../../../test/plain-tree.ts'
import { openReceiver } from '../../../../test/receiver.ts'
import { call, openByteRenderer, script } from '../../../../test/rolling.ts'
import { serveMetrics } from '../../../doors/door/serve-metrics.ts'
import { calculator } from '../../../engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../../engine/weigh/estimate.ts'
import { rollGroups } from '../../run/roll-groups.ts'
import { listenAll, type RunEvent } from '../events.ts'
import { openEventsFile } from './events-file.ts'
import { openExporter } from './otlp.ts'
import { makeMetrics } from './prometheus.ts'
import { makeTraces } from './traces.ts'
import { watchSamples } from './watch-samples.ts'

const events: readonly RunEvent[] = [
  { kind: 'run-start', run: 'runs/0001', command: 'roll', finished: 0 },
  { kind: 'attempt-start', task: 'a', member: 0 },
  {
    kind: 'sample-end',
    tree: 'a/0',
    turn: 0,
    seconds: 0.5,
    prompt: 10,
    sampled: 3,
    finish: 'stop',
  },
  { kind: 'retry', problem: 'status', status: 429, attempt: 1, waitSeconds: 1 },
  { kind: 'tree-end', tree: plainTree({ calls: [{ problem: 'timeout' }] }) },
  {
    kind: 'tree-end',
    tree: plainTree({ outcome: { kind: 'failed', boundary: 'tool', message: 'a "quoted"\nline' } }),
  },
  { kind: 'warning', sentinel: 'one-answer', message: 'm', likely: 'l' },
  { kind: 'concurrency-change', from: 32, to: 22, reason: 'busy' },
  { kind: 'run-end', status: 'failed', reason: 'no', error: new Error('no') },
]

describe('events', () => {
  it('are JSON lines with their time; those that trees hold are left out', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'espalier-events-')), 'events.jsonl')
    {
      await using file = openEventsFile(path)
      for (const event of events) file.listen(event)
    }
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    const records = lines.map(line => JSON.parse(line))
    expect(records.map(({ kind }) => kind)).toEqual([
      ...['run-start', 'retry', 'tree-end', 'tree-end', 'warning', 'concurrency-change', 'run-end'],
    ])
    expect(records[2]).toMatchObject({ outcomes: ['completed'], calls: 1, problems: 1, sampled: 3 })
    expect(records.every(({ time }) => !Number.isNaN(Date.parse(time)))).toBe(true)
    expect(records.at(-1)).not.toHaveProperty('error')
  })

  it('keep workers when others are there, not every time that they are told', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'espalier-events-')), 'events.jsonl')
    const counts = { concurrency: 4, running: 2, done: 0, refused: 0, sampled: 0 }
    const worker = (id: string) => ({ id, host: 'here', process: 1, ...counts, ...times })
    const times = { leaving: false, seconds: 1, silent: 0, refusal: null }
    {
      await using file = openEventsFile(path)
      for (const ids of [[], ['a'], ['a'], ['a', 'b'], ['b'], ['b']]) {
        file.listen({ kind: 'workers', workers: ids.map(worker) })
      }
    }
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    expect(lines.map(line => JSON.parse(line).workers.length)).toEqual([0, 1, 2, 1])
  })

  it('do not stop a run whose folder cannot be written', async () => {
    await using file = openEventsFile('/proc/version/events.jsonl')
    for (const event of events) file.listen(event)
    // Whether writing has failed by now or not: what comes later is no reason to stop either.
    await new Promise(resolve => setImmediate(resolve))
    file.listen(events[0]!)
  })
})

describe('metrics', () => {
  it("are served in Prometheus' text format", async () => {
    const metrics = makeMetrics()
    for (const event of events) metrics.listen(event)
    await using served = await serveMetrics(metrics, 0)
    const response = await fetch(served.url)
    expect(response.headers.get('content-type')).toContain('version=0.0.4')
    const text = await response.text()
    for (const line of [
      '# TYPE espalier_attempts_started_total counter',
      'espalier_attempts_started_total 1',
      'espalier_tokens_total{kind="sampled"} 3',
      'espalier_sample_seconds_sum 0.5',
      'espalier_sample_seconds_count 1',
      'espalier_retries_total{problem="429"} 1',
      'espalier_trajectories_total{outcome="failed",boundary="tool"} 1',
      'espalier_tool_calls_total{tool="tool0",problem="timeout"} 1',
      'espalier_concurrency 22',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
    expect((await fetch(served.url.replace('/metrics', '/other'))).status).toBe(404)
  })
})

describe('lanes', () => {
  it('are told as they stand, while a run goes through them', async () => {
    const metrics = makeMetrics()
    const renderer = await openByteRenderer()
    const end = renderer.stopIds[0]!
    const delay = () => Number.POSITIVE_INFINITY
    const { policy, counts } = openCountingPolicy({ length: () => 7, delay, end })
    const stop = new AbortController()
    const parts = { environment: calculator(), policy, renderer, estimate: makeEstimate('grpo') }
    const groups = rollGroups(4, {
      ...parts,
      group: 2,
      concurrency: { rollouts: 8, policy: 3, tools: 5 },
      signal: stop.signal,
      listen: metrics.listen,
    })
    const rolled = groups.next().catch((error: Error) => error.message)
    await vi.waitFor(() => expect(counts.running).toBe(3), 30_000)
    await vi.waitFor(() => expect(linesOf(metrics)).toContain(laneLine('waiting', 'policy', 5)))
    expect(linesOf(metrics)).toEqual(
      expect.arrayContaining([
        '# TYPE espalier_lane_running gauge',
        laneLine('running', 'policy', 3),
        laneLine('limit', 'policy', 3),
        laneLine('limit', 'tools', 5),
        laneLine('running', 'tools', 0),
        laneLine('running', 'environment', 0),
        laneLine('waiting', 'reward', 0),
      ]),
    )
    stop.abort(new Error('enough'))
    expect(await rolled).toBe('enough')
    expect(linesOf(metrics)).toContain(laneLine('running', 'policy', 0))
    expect(linesOf(metrics)).toContain(laneLine('limit', 'policy', 0))
  })
})

const linesOf = (metrics: { text(): string }): readonly string[] => metrics.text().split('\n')
const laneLine = (part: string, lane: string, value: number): string =>
  `espalier_lane_${part}{lane="${lane}"} ${value}`

describe('traces', () => {
  it('name attempts, samples and calls as the GenAI conventions do', async () => {
    await using receiver = await openReceiver()
    const renderer = await openByteRenderer()
    const policy = script(renderer, [call('calculate', { expression: '1+1' }), 'It is 2<|im_end|>'])
    {
      const resource = { 'service.name': 'espalier', 'service.version': '1' }
      await using exporter = openExporter({ url: receiver.url, resource })
      const traces = makeTraces('run', exporter)
      for await (const _ of rollGroups([{ prompt: '1+1?', answer: '2' }], {
        environment: calculator(),
        policy,
        renderer,
        estimate: makeEstimate('grpo'),
        group: 1,
        listen: traces.listen,
        instruments: [traces.instrument],
      }));
      expect(exporter.counts.lost).toBe(0)
    }
    const received = receiver.received as readonly { path: string; body: Body }[]
    expect(new Set(received.map(({ path }) => path))).toEqual(new Set(['/v1/traces']))
    // A slow machine sends them in several batches.
    const spans = received.flatMap(({ body }) => body.resourceSpans[0]!.scopeSpans[0]!.spans)
    expect(spans.map(({ name }) => name)).toEqual([
      ...['text_completion scripted', 'execute_tool calculate', 'text_completion scripted'],
      'invoke_agent calculator',
    ])
    const root = spans.at(-1)!
    expect(root.traceId).toMatch(/^[\da-f]{32}$/)
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
    for (const span of spans.slice(0, -1)) {
      expect(span.parentSpanId).toBe(root.spanId)
      expect(span.spanId).toMatch(/^[\da-f]{16}$/)
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true)
    }
    const first = Object.fromEntries(spans[0]!.attributes.map(({ key, value }) => [key, value]))
    expect(first['gen_ai.operation.name']).toEqual({ stringValue: 'text_completion' })
    expect(first['gen_ai.usage.input_tokens']).toEqual({ intValue: expect.stringMatching(/^\d+$/) })
    expect(first['gen_ai.response.finish_reasons']).toEqual({
      arrayValue: { values: [{ stringValue: 'stop' }] },
    })
    const tool = Object.fromEntries(spans[1]!.attributes.map(({ key, value }) => [key, value]))
    expect(tool['gen_ai.tool.name']).toEqual({ stringValue: 'calculate' })
  })

  it('are tried again where the collector is busy, and given up where it is gone', async () => {
    await using receiver = await openReceiver(index => (index === 0 ? [503, ''] : [200, '{}']))
    const span = {
      trace: 'a'.repeat(32),
      id: 'b'.repeat(16),
      name: 'x',
      kind: 'internal',
      start: 1.5,
      end: 2,
      attributes: { share: 0.5, isBig: true, nothing: undefined },
    } as const
    const busy = openExporter({ url: receiver.url, resource: {} })
    busy.add(span)
    await busy[Symbol.asyncDispose]()
    expect([receiver.received.length, busy.counts]).toEqual([2, { sent: 1, lost: 0 }])
    const [sent] = receiver.received[1]!.body.resourceSpans[0].scopeSpans[0].spans
    expect([sent.startTimeUnixNano, sent.attributes]).toEqual([
      '1500000',
      [
        { key: 'share', value: { doubleValue: 0.5 } },
        { key: 'isBig', value: { boolValue: true } },
      ],
    ])
    const gone = openExporter({ url: 'http://127.0.0.1:9', resource: {} })
    for (let count = 0; count < 100; count++) gone.add(span)
    await gone[Symbol.asyncDispose]()
    expect(gone.counts).toEqual({ sent: 0, lost: 100 })
  })
})

interface Body {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string
        readonly traceId: string
        readonly spanId: string
        readonly parentSpanId?: string
        readonly startTimeUnixNano: string
        readonly endTimeUnixNano: string
        readonly attributes: readonly { readonly key: string; readonly value: unknown }[]
      }[]
    }[]
  }[]
}

it('samples are told of, and a listener that throws keeps nobody from hearing', async () => {
  const renderer = await openByteRenderer()
  const end = renderer.stopIds[0]!
  const { policy } = openCountingPolicy({ length: () => 7, end })
  const heard: RunEvent[] = []
  const broken = (): void => {
    throw new Error('broken')
  }
  const listen = listenAll(broken, event => heard.push(event))
  const parts = { environment: calculator(), policy, renderer, estimate: makeEstimate('grpo') }
  for await (const _ of rollGroups(3, {
    ...parts,
    group: 2,
    instruments: [watchSamples(listen)],
    listen,
  }));
  const samples = heard.filter(event => event.kind === 'sample-end')
  expect(samples).toHaveLength(6)
  expect(samples[0]).toMatchObject({ sampled: 7, finish: 'stop' })
})
