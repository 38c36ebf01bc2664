import { join } from 'node:path'
import { textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import {
  condenser,
  expectPaired,
  folder,
  made,
  optionsFor,
  readLines,
  signal,
  world,
} from '../../../test/datasets.ts'
import { call, openByteRenderer } from '../../../test/rolling.ts'
import type { Task } from '../../base/core/environment.ts'
import { keywordCondenser } from '../../engine/condensers/keyword.ts'
import type { PassageTask } from '../../engine/environments/built-in/passages.ts'
import { scripted } from '../../engine/policies/scripted.ts'
import { roll } from '../../run/run/roll.ts'
import { buildDataset, type Example } from './build.ts'
import { condensedSftItem } from './condensed-sft.ts'
import { runSftItems } from './run-sft.ts'
import { readSplits } from './splits.ts'
import { makeTaughtSft } from './taught-sft.ts'

const boundary = /(?<=\n\n)/

describe('condensedSftItem', () => {
  it('shows conversations that recall what the answer needs, and answer', async () => {
    for (const task of made(10)) {
      const built = await condensedSftItem(task, { condenser }).build({ signal })
      if (built.kind === 'rejected') throw new Error(built.reason)
      const { messages, tools } = built.rows[0]!.example
      expect(tools!.map(tool => tool.function.name)).toEqual(['recall'])
      expect(messages.map(({ role }) => role)).toEqual([
        'system',
        'user',
        'assistant',
        'tool',
        'assistant',
        'tool',
        'assistant',
      ])
      const originals = task.data.passages.map(({ title, text }) => `${title}: ${text}`)
      const [first, second] = messages.filter(({ role }) => role === 'tool')
      expect(originals).toContain(first!.content)
      expect(originals).toContain(second!.content)
      expect(textOf(first!.content).startsWith(task.data.supporting[0]!)).toBe(true)
      expectPaired(messages)
      const answer = textOf(messages.at(-1)!.content)
      expect(answer).toContain(`\\boxed{${task.data.answer[0]}}`)
      expect(textOf(messages[1]!.content)).not.toContain(task.data.answer[0])
    }
  })

  it('[D1] rejects what cannot teach, with reasons', async () => {
    const [task] = made(1)
    const cases: readonly [Partial<PassageTask>, string][] = [
      [{ supporting: [] }, 'no-supporting-passages'],
      [{ supporting: ['Nowhere'] }, 'supporting-passage-missing'],
      [{ answer: ['a word that stands nowhere'] }, 'answer-in-no-passage'],
      [
        { passages: [{ title: 'A', text: 'short' }], supporting: ['A'], answer: ['short'] },
        'nothing-condensed',
      ],
    ]
    for (const [change, reason] of cases) {
      const item = condensedSftItem({ ...task!, data: { ...task!.data, ...change } }, { condenser })
      expect(await item.build({ signal })).toMatchObject({ kind: 'rejected', reason })
    }
    const few = condensedSftItem(task!, { condenser, mostRecalls: 1 })
    expect(await few.build({ signal })).toMatchObject({ reason: 'too-many-recalls' })
  })

  it('recalls nothing where what is shown tells enough', async () => {
    const gentle = keywordCondenser({ chunk: { boundary }, ratio: 1.02, terms: 60, relations: 20 })
    const [task] = made(1)
    const built = await condensedSftItem(task!, { condenser: gentle }).build({ signal })
    if (built.kind === 'rejected') expect(built.reason).toBe('nothing-condensed')
    else expect(built.rows[0]!.notes.recalls).toBeLessThan(2)
  })
})

const renderer = await openByteRenderer()
const recall = (block: number): string => call('recall', { block: block })

/** The numbers of the blocks on the supporting passages, as the policy sees them. */
async function supportingNumbers({ data }: Task<PassageTask>): Promise<readonly number[]> {
  const order = data.passages.map(({ title }) => title)
  return data.supporting.map(title => order.indexOf(title) + 1)
}

describe('makeTaughtSft', () => {
  const condense = { condenser, above: 0.75, to: 0.5, trainSummaries: true }
  async function teach(turns: (numbers: readonly number[], answer: string) => readonly string[]) {
    const [task] = made(1)
    const answers = turns(await supportingNumbers(task!), task!.data.answer[0]!)
    const policy = scripted(answers, { encode: text => renderer.tokenizer.encode(text) })
    const item = makeTaughtSft({ policy, renderer, condense, concurrency: 2, seed: 1 })(task!)
    return { built: await item.build({ signal }), policy, task: task! }
  }

  it('keeps what a policy showed, without what it was told in private', async () => {
    const { built, policy, task } = await teach(([town, person], answer) => [
      recall(town!),
      recall(person!),
      `The register says so. \\boxed{${answer}}<|im_end|>`,
    ])
    if (built.kind === 'rejected') throw new Error(`${built.reason} ${built.detail}`)
    const asked = renderer.decode(policy.prompts[0]!)
    expect(asked).toContain('In private, for you alone')
    const { messages } = built.rows[0]!.example
    expect(JSON.stringify(messages)).not.toContain('In private')
    expect(messages[0]).toEqual({ role: 'system', content: expect.stringContaining('\\boxed{…}') })
    expect(textOf(messages[1]!.content)).toContain('<block_1>')
    expectPaired(messages)
    expect(built.rows[0]!.notes).toMatchObject({ recalls: 2, f1: 1 })
    expect(built.rows[0]!.subject).toBe(task.data.question)
  })

  it.each([
    ['wrong-answer', ['The answer is \\boxed{something else}<|im_end|>']],
    ['gives-away-the-hint', ['As the hint says, \\boxed{X}<|im_end|>']],
    [
      'not-completed',
      Array(9).fill(
        '<tool_call>\n{"name": "recall", "arguments": {"block": 1}}\n</tool_call><|im_end|>',
      ),
    ],
  ])('[D1] rejects for %s', async (reason, answers) => {
    const { built } = await teach(() => answers as readonly string[])
    expect(built).toMatchObject({ kind: 'rejected', reason })
  })

  it('[D1] rejects an answer that was not read up', async () => {
    const { built } = await teach((_, answer) => [`\\boxed{${answer}}<|im_end|>`])
    expect(built).toMatchObject({ kind: 'rejected', reason: 'needed-block-not-recalled' })
  })
})

describe('runSftItems', () => {
  async function rolled(condense?: string) {
    const tasks = made(2)
    const answers = await Promise.all(
      tasks.map(async task => {
        const numbers = condense ? await supportingNumbers(task) : []
        const final = task.id.endsWith('0') ? task.data.answer[0] : 'wrong'
        return [...numbers.map(recall), `Found: \\boxed{${final}}<|im_end|>`].map(text => ({
          text,
          task: task.id,
        }))
      }),
    )
    const policy = scripted(answers.flat(), { encode: text => renderer.tokenizer.encode(text) })
    const run = join(await folder(), 'run')
    const data = tasks.map(({ id, data: each }) => ({ id, ...each }))
    const options = { policy, model: renderer, group: 1, out: run, ...(condense && { condense }) }
    for await (const _ of roll(world, data, options)) {
      // Only the folder is looked at.
    }
    const options2 = await optionsFor({ splits: readSplits('none') })
    const report = await buildDataset(runSftItems(run, { condenser }), options2)
    return { report, lines: await readLines<Example>(options2.out), tasks }
  }

  it('takes what was condensed as it was shown, where it was rewarded', async () => {
    const { report, lines } = await rolled('keyword:boundary=blank-line')
    expect(report).toMatchObject({ rows: { all: 1 }, rejected: { 'low-reward': 1 } })
    const { messages, tools } = lines[0]!
    expect(tools!.map(tool => tool.function.name)).toEqual(['recall'])
    expect(textOf(messages[1]!.content)).toContain('<block_1>')
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(2)
    expectPaired(messages)
  })

  it('condenses what was not, and puts in the recalls that the answer needs', async () => {
    const { report, lines, tasks } = await rolled()
    expect(report).toMatchObject({ rows: { all: 1 } })
    const { messages } = lines[0]!
    expect(textOf(messages[1]!.content)).toContain('<block_1>')
    const given = messages.filter(({ role }) => role === 'tool')
    expect(given.length).toBeGreaterThan(0)
    expect(textOf(given[0]!.content)).toContain(tasks[0]!.data.answer[0])
    expectPaired(messages)
  })
})
