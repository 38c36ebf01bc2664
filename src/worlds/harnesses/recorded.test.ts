import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import '../../offers.ts'
import { scriptFor } from '../../../test/harnesses/script.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import { agent, roll } from '../../index.ts'
import { claudeCode } from './claude-code.ts'
import { codex } from './codex.ts'
import type { Ended, Harness } from './contract.ts'
import { miniSweAgent } from './mini-swe-agent.ts'
import { openCode } from './opencode.ts'

interface Recorded {
  readonly sent: readonly { readonly path: string; readonly body: unknown }[]
}

/** Sends again what a real harness sent (`npm run agents -- --record`), to the same script. */
async function replay(name: string) {
  const file = `test/fixtures/harnesses/${name}.json.gz`
  const { sent } = JSON.parse(gunzipSync(readFileSync(file)).toString()) as Recorded
  const renderer = await openByteRenderer()
  const replaying = agent({
    name,
    task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
    async run({ fetch }) {
      for (const { path, body } of sent) {
        const request = { method: 'POST', body: JSON.stringify(body) }
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(`http://gateway${path}`, { ...request, headers })
        if (!answer.ok) throw new Error(await answer.text())
        await answer.text()
      }
      return 1
    },
  })
  const limits = { turns: 64, tokens: 1_000_000, context: 2_000_000, newTokens: 4096 }
  const policy = scriptFor(name, renderer)
  for await (const { members } of roll(replaying, [{}], {
    policy,
    model: renderer,
    group: 1,
    limits,
  })) {
    const { outcome, turns, fidelity, events } = members[0]!.trajectory
    const sides = events.filter(({ kind }) => kind.startsWith('side:')).map(({ kind }) => kind)
    const forks = fidelity.forks.map(({ reason }) => reason.split(':')[0])
    return { outcome: outcome.kind, requests: sent.length, turns: turns.length, forks, sides }
  }
  return undefined
}

it.each([
  ['claude-code', [], []],
  ['codex', [], []],
  ['mini-swe-agent', [], []],
  ['opencode', ['conversation'], ['side:title']],
  ['sub-agents', ['conversation', 'conversation'], ['side:sub-agent', 'side:sub-agent']],
  ['compaction-claude-code', ['answer', 'compaction'], ['side:summary']],
  ['compaction-codex', ['tools', 'compaction'], ['side:summary']],
  [
    'compaction-opencode',
    ['conversation', 'conversation', 'compaction'],
    ['side:title', 'side:summary'],
  ],
])(
  'every request of %s is answered and kept, on paths that say why they begin',
  async (name, forks, sides) => {
    const kept = await replay(name)
    expect(kept).toEqual({
      outcome: 'completed',
      requests: kept!.turns,
      turns: kept!.turns,
      forks,
      sides,
    })
  },
)

const ended = (parts: Partial<Ended>): Ended => ({ code: 0, output: '', complaints: '', ...parts })
const line = (event: object): string => `${JSON.stringify(event)}\n`
const submitted = JSON.stringify(
  { info: { exit_status: 'Submitted', submission: 'done' } },
  null,
  2,
)

/** How each harness tells that it did its work, as its real program printed it. */
const ends: readonly (readonly [Harness, Ended, Ended])[] = [
  [
    claudeCode,
    ended({
      output: line({
        type: 'result',
        subtype: 'success',
        is_error: false,
        result: 'done',
        num_turns: 2,
      }),
    }),
    ended({
      output: line({
        type: 'result',
        subtype: 'success',
        is_error: true,
        result: 'API Error: 410',
      }),
    }),
  ],
  [
    codex,
    ended({
      output: `${line({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: 'done' } })}${line({ type: 'turn.completed', usage: {} })}`,
    }),
    ended({
      code: 1,
      output: line({ type: 'turn.failed', error: { message: 'stream disconnected' } }),
    }),
  ],
  [
    openCode,
    ended({ output: line({ type: 'text', part: { type: 'text', text: 'done' } }) }),
    ended({ code: 1, output: line({ type: 'error', error: { name: 'UnknownError' } }) }),
  ],
  [
    miniSweAgent,
    ended({ result: submitted }),
    ended({ result: submitted.replace('Submitted', 'LimitsExceeded') }),
  ],
]

it.each(ends.map(([harness, ...both]) => [harness.name, harness, ...both] as const))(
  '%s says whether it did its work, and what it answered',
  (_, harness, good, bad) => {
    expect([good, bad].map(each => harness.isDone(each))).toEqual([true, false])
    expect(harness.report(good).answer).toBe('done')
    const assignment = {
      prompt: 'Mend it.',
      folder: '/agent',
      model: 'espalier',
      url: 'http://here',
      token: 'esp-1',
    }
    const { words, input = '' } = harness.start(assignment)
    expect([...words, input].join(' ')).toContain('Mend it.')
    expect([...words, input].join(' ')).not.toContain('esp-1')
  },
)
