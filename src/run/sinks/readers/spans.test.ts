import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Message } from '@espalier/text'
import { generateText, stepCountIs, tool } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { openByteRenderer } from '../../../../test/rolling.ts'
import { importRun } from '../../exchange/import.ts'
import { openRunReader } from '../../store/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-spans-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A tracer that keeps what it is told, one object per span. */
function keepSpans() {
  const spans: { name: string; traceId: string; startTime: number; attributes: object }[] = []
  const start = (name: string, options: { attributes?: object } = {}) => {
    const span = {
      name,
      traceId: 'trace-1',
      startTime: spans.length,
      attributes: { ...options.attributes },
    }
    spans.push(span)
    return {
      setAttributes: (more: object) => Object.assign(span.attributes, more),
      setAttribute: (key: string, value: unknown) =>
        Object.assign(span.attributes, { [key]: value }),
      addEvent() {},
      setStatus() {},
      recordException() {},
      end() {},
      spanContext: () => ({ traceId: 'trace-1', spanId: name, traceFlags: 0 }),
    }
  }
  const tracer = {
    startSpan: start,
    startActiveSpan: (name: string, ...rest: readonly unknown[]) => {
      const run = rest.at(-1) as (span: object) => unknown
      return run(start(name, rest[0] as { attributes?: object }))
    },
  }
  return { spans, tracer }
}

/** A run's conversations and how faithful they are. */
async function readBack(run: string) {
  const found: { messages: readonly Message[]; fidelity: string; tools: number }[] = []
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    for (const { trajectory, tree } of group.members) {
      const { messages, fidelity } = trajectory
      found.push({ messages, fidelity: fidelity.kind, tools: tree.tools.length })
    }
  }
  return found
}

it('reads what the telemetry of the AI SDK kept of an agent', async () => {
  const { spans, tracer } = keepSpans()
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const finish = (unified: 'stop' | 'tool-calls') => ({ unified, raw: unified })
  const call = {
    type: 'tool-call' as const,
    toolCallId: 'c1',
    toolName: 'look',
    input: '{"at":"door"}',
  }
  const answers = [
    { content: [call], finishReason: finish('tool-calls'), usage, warnings: [] },
    {
      content: [{ type: 'text' as const, text: 'Open.' }],
      finishReason: finish('stop'),
      usage,
      warnings: [],
    },
  ]
  await generateText({
    model: new MockLanguageModelV3({ doGenerate: answers }),
    system: 'Be terse.',
    prompt: 'Is it open?',
    tools: { look: tool({ inputSchema: z.object({ at: z.string() }), execute: () => 'open' }) },
    stopWhen: stepCountIs(3),
    experimental_telemetry: { isEnabled: true, tracer: tracer as never },
  })
  const file = join(folder, 'spans.jsonl')
  writeFileSync(file, spans.map(span => `${JSON.stringify(span)}\n`).join(''))
  const out = join(folder, 'run')
  const renderer = await openByteRenderer()
  const counts = await importRun(file, { from: 'ai-sdk', out, renderer })
  expect(counts).toMatchObject({ groups: 1, trajectories: 1, encodedAgain: 1 })
  const [read] = await readBack(out)
  expect(read!.messages.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'assistant',
  ])
  expect(read).toMatchObject({ fidelity: 're-encoded', tools: 1 })
  expect(read!.messages.at(-1)!.content).toBe('Open.')
})

it('reads OpenTelemetry’s GenAI spans out of an OTLP export', async () => {
  const text = (value: unknown) => ({ stringValue: JSON.stringify(value) })
  const part = (content: string) => [{ type: 'text', content }]
  const attributes = [
    { key: 'gen_ai.input.messages', value: text([{ role: 'user', parts: part('Is it open?') }]) },
    {
      key: 'gen_ai.output.messages',
      value: text([{ role: 'assistant', parts: part('Yes.'), finish_reason: 'stop' }]),
    },
    { key: 'gen_ai.system_instructions', value: text(part('Be terse.')) },
  ]
  const spans = [
    { traceId: 'a', name: 'chat', startTimeUnixNano: '1', attributes },
    { traceId: 'a', name: 'other' },
  ]
  const file = join(folder, 'otlp.jsonl')
  writeFileSync(file, JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }))
  const out = join(folder, 'otlp')
  await importRun(file, { from: 'otel', out, renderer: await openByteRenderer() })
  const [read] = await readBack(out)
  expect(read!.messages).toEqual([
    { role: 'system', content: 'Be terse.' },
    { role: 'user', content: 'Is it open?' },
    { role: 'assistant', content: 'Yes.' },
  ])
})
