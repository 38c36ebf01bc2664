import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openLlamaCppServer } from '../../../test/servers/llama-cpp.ts'
import { openOpenAiChatServer } from '../../../test/servers/openai-chat.ts'
import type { ServingOptions } from '../../../test/servers/serving.ts'
import { openSglangServer } from '../../../test/servers/sglang.ts'
import { openVllmServer } from '../../../test/servers/vllm.ts'
import type { Group } from '../../base/core/group.ts'
import { byteModel } from '../settings/model-source.ts'
import { roll } from './roll.ts'
import type { RollOptions } from './roll-options.ts'

const called = {
  id: 'call_1',
  type: 'function',
  function: { name: 'calculate', arguments: '{"expression": "2+3"}' },
}

const servers = {
  sglang: openSglangServer,
  vllm: openVllmServer,
  'llama-cpp': openLlamaCppServer,
  openai: (options: ServingOptions) => openOpenAiChatServer({ ...options, toolCalls: [called] }),
}

/** A call of the calculator, byte by byte as the byte model has it. */
const said = Buffer.from(
  '<tool_call>\n{"name": "calculate", "arguments": {"expression": "2+3"}}\n</tool_call>',
)
const answer: ServingOptions['answer'] = () => ({
  ids: [...said],
  logprobs: [...said].map(() => -0.5),
  finish: 'stop',
  text: said.toString(),
})

async function rolled(policy: string, options: Partial<RollOptions> = {}) {
  const told: string[] = []
  const groups: Group[] = []
  const tasks = [{ prompt: 'What is 2 + 3?', answer: '5' }]
  const own = { group: 1, model: byteModel, threads: 1, retries: 0, ...options }
  const tell = (line: string): void => void told.push(line)
  for await (const group of roll('calculator', tasks, { policy, tell, ...own })) groups.push(group)
  const [member] = groups[0]!.members
  return { told, trajectory: member?.trajectory, group: groups[0]! }
}

describe("a server's own context", () => {
  it.each(['sglang', 'vllm', 'llama-cpp'] as const)(
    '[O2] of %s counts from the start where it is below --max-context, with one warning',
    async kind => {
      await using server = await servers[kind]({ answer, tokens: 8 })
      const { told, trajectory } = await rolled(`${kind}:${server.url}`, {
        limits: { turns: 100, tokens: 100_000 },
      })
      expect(told.filter(line => line.startsWith('WARNING'))).toEqual([
        `WARNING: ${kind}:${server.url} takes 4096 tokens at most, less than --max-context 32768: attempts end at 4096`,
      ])
      expect(trajectory?.outcome).toEqual({ kind: 'truncated', limit: 'context' })
      const { body } = server.seen.findLast(({ body }) => body)!
      const prompt = body.input_ids ?? body.token_ids ?? body.prompt
      expect(prompt.length).toBeLessThan(4096)
    },
  )

  it('changes nothing, and is not warned of, where --max-context is no larger', async () => {
    await using server = await openSglangServer({ answer })
    const { told, trajectory } = await rolled(`sglang:${server.url}`, {
      limits: { turns: 2, context: 4096 },
    })
    expect(told.filter(line => line.startsWith('WARNING'))).toEqual([])
    expect(trajectory?.outcome).toEqual({ kind: 'truncated', limit: 'turns' })
  })

  it.each(['sglang', 'vllm', 'llama-cpp', 'openai'] as const)(
    '[O2] of %s truncates an attempt whose prompt is refused, and keeps what was sampled',
    async kind => {
      const fault: ServingOptions['fault'] = nth => (nth === 1 ? 'too-long' : undefined)
      await using server = await servers[kind]({ answer, fault })
      const { trajectory } = await rolled(`${kind}:${server.url}`)
      expect(trajectory).toMatchObject({
        outcome: { kind: 'truncated', limit: 'context' },
        turns: [{}],
        events: [{ kind: 'context-refused', detail: expect.stringContaining('answered 400') }],
      })
    },
  )

  it('[S1] is in a record: its replay ends where the recorded attempt did, told or refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'espalier-limits-'))
    const record = join(folder, 'cassette.jsonl')
    await using server = await openSglangServer({ answer })
    const limits = { turns: 100, tokens: 100_000 }
    const first = await rolled(`sglang:${server.url}`, { record, limits })
    const again = await rolled(`replay:${record}`, { limits })
    expect(again.trajectory?.outcome).toEqual({ kind: 'truncated', limit: 'context' })
    expect(again.trajectory?.turns).toEqual(first.trajectory?.turns)
    const fault: ServingOptions['fault'] = nth => (nth === 1 ? 'too-long' : undefined)
    await using refusing = await openSglangServer({ answer, fault })
    const refused = join(folder, 'refused.jsonl')
    await rolled(`sglang:${refusing.url}`, { record: refused })
    const { trajectory } = await rolled(`replay:${refused}`)
    expect(trajectory?.outcome).toEqual({ kind: 'truncated', limit: 'context' })
  })
})
