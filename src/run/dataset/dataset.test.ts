import { appendFile, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { speaking } from '../../../test/condensing.ts'
import { call, openByteRenderer } from '../../../test/rolling.ts'
import { keywordCondenser } from '../../condensers/keyword.ts'
import { measureLoss } from '../../condensers/probe.ts'
import type { Condenser, Condensing } from '../../core/condenser.ts'
import type { Task } from '../../core/environment.ts'
import { type Message, textOf } from '../../core/message.ts'
import { type PassageTask, passages } from '../../environments/passages.ts'
import { scripted } from '../../policies/scripted.ts'
import { roll } from '../front.ts'
import { readTasks } from '../tasks.ts'
import { buildDataset, type DatasetItem, type DatasetOptions, type Example } from './build.ts'
import { condensedSftItem } from './condensed-sft.ts'
import { condenserPairItem, readQuestions } from './condenser-pairs.ts'
import { runSftItems } from './run-sft.ts'
import { readSplits, splitOf } from './splits.ts'
import { taughtSftItem } from './taught-sft.ts'

const signal = new AbortController().signal
const boundary = /(?<=\n\n)/
const condenser = keywordCondenser({ chunk: { boundary } })
const world = passages()
const made = (count: number, seed = 1): readonly Task<PassageTask>[] =>
  world.makeTasks!({ count, seed })

const folder = (): Promise<string> => mkdtemp(join(tmpdir(), 'dataset-'))

async function optionsFor(parts: Partial<DatasetOptions> = {}): Promise<DatasetOptions> {
  return {
    out: join(await folder(), 'set.jsonl'),
    splits: readSplits('train=0.8,held-out=0.2'),
    seed: 1,
    concurrency: 4,
    signal,
    settings: { kind: 'test' },
    ...parts,
  }
}

async function readLines<T>(file: string): Promise<readonly T[]> {
  const text = await readFile(file, 'utf8')
  return text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as T)
}

const itemsOf = (count: number) => made(count).map(task => condensedSftItem(task, { condenser }))

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

function expectPaired(messages: readonly Message[]): void {
  const asked = messages.flatMap(each =>
    each.role === 'assistant' ? (each.tool_calls ?? []).map(({ id }) => id) : [],
  )
  expect(messages.flatMap(each => (each.role === 'tool' ? [each.tool_call_id] : []))).toEqual(asked)
}

describe('buildDataset', () => {
  it('writes OpenAI-shaped lines into splits that share no subject', async () => {
    const options = await optionsFor()
    const report = await buildDataset(itemsOf(30), options)
    expect(report).toMatchObject({ items: 30, resumed: 0, rejected: {} })
    const [train, held] = await Promise.all(report.files.map(file => readLines<Example>(file)))
    expect(train!.length + held!.length).toBe(30)
    expect(held!.length).toBeGreaterThan(1)
    for (const line of [...train!, ...held!]) {
      expect(Object.keys(line).sort()).toEqual(['messages', 'tools'])
    }
    const subjects = (lines: readonly Example[]) =>
      new Set(lines.map(({ messages }) => textOf(messages[1]!.content).split('\n')[0]))
    const shared = [...subjects(train!)].filter(subject => subjects(held!).has(subject))
    expect(shared).toEqual([])
    expect(await readdir(join(options.out, '..'))).toEqual([
      'set.held-out.jsonl',
      'set.train.jsonl',
    ])
  })

  it('goes on where it was interrupted, and comes to the same files', async () => {
    const whole = await optionsFor()
    await buildDataset(itemsOf(20), whole)
    const stopped = await optionsFor()
    const stop = new AbortController()
    let built = 0
    const slow: readonly DatasetItem[] = itemsOf(20).map(item => ({
      ...item,
      async build(each) {
        if (++built === 8) stop.abort(new Error('killed'))
        each.signal.throwIfAborted()
        return await item.build(each)
      },
    }))
    await expect(buildDataset(slow, { ...stopped, signal: stop.signal })).rejects.toThrow('killed')
    // A kill in mid-write leaves half a line.
    await appendFile(`${stopped.out}.work`, '{"id":"passages/tr')
    let again = 0
    const counted = itemsOf(20).map(item => ({
      ...item,
      build: (each: { signal: AbortSignal }) => {
        again++
        return item.build(each)
      },
    }))
    const report = await buildDataset(counted, stopped)
    expect(report.resumed).toBeGreaterThan(3)
    expect(again).toBe(20 - report.resumed)
    for (const split of ['train', 'held-out']) {
      const [one, two] = await Promise.all(
        [whole, stopped].map(({ out }) =>
          readFile(out.replace('.jsonl', `.${split}.jsonl`), 'utf8'),
        ),
      )
      expect(two).toBe(one)
    }
  })

  it('refuses to go on with other settings, or to write over a finished set', async () => {
    const options = await optionsFor({ splits: readSplits('none') })
    await writeFile(`${options.out}.work`, '{"espalier":"dataset","settings":{"kind":"other"}}\n')
    await expect(buildDataset(itemsOf(2), options)).rejects.toThrow('was begun with other settings')
    const other = await optionsFor({ splits: readSplits('none') })
    await buildDataset(itemsOf(2), other)
    await expect(buildDataset(itemsOf(2), other)).rejects.toThrow('is there already')
  })

  it('[D1] leaves duplicates out, and tells what was rejected and why', async () => {
    const options = await optionsFor({ splits: readSplits('none') })
    const [task] = made(1)
    const item = (id: string, change: Partial<PassageTask> = {}): DatasetItem =>
      condensedSftItem({ id: id as Task['id'], data: { ...task!.data, ...change } }, { condenser })
    const broken: DatasetItem = { id: 'broken', build: () => Promise.reject(new Error('no disk')) }
    const report = await buildDataset(
      [item('a'), item('b'), item('c', { supporting: [] }), broken],
      options,
    )
    expect(report).toMatchObject({
      items: 4,
      rows: { all: 1 },
      rejected: { duplicate: 1, 'no-supporting-passages': 1, failed: 1 },
    })
    expect(await readLines(options.out.replace('.jsonl', '.rejected.jsonl'))).toEqual([
      { id: 'broken', reason: 'failed', detail: 'no disk' },
      { id: 'c', reason: 'no-supporting-passages' },
    ])
    await expect(buildDataset([item('a'), item('a')], await optionsFor())).rejects.toThrow(
      'two items have the id "a"',
    )
  })

  it('writes Parquet with the same rows', async () => {
    const out = join(await folder(), 'set.parquet')
    const report = await buildDataset(
      itemsOf(6),
      await optionsFor({ out, splits: readSplits('none') }),
    )
    expect(report.rows).toEqual({ all: 6 })
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(out) })
    expect(rows).toHaveLength(6)
    expect(rows[0]).toMatchObject({ id: 'passages/train/0' })
    const messages = JSON.parse(rows[0]!.messages as string) as readonly Message[]
    expect(messages[0]!.role).toBe('system')
    expect(JSON.parse(rows[0]!.notes as string)).toMatchObject({ recalls: 2, blocks: 8 })
  })
})

describe('readSplits', () => {
  it('reads names and shares, and refuses what does not add up', () => {
    expect(readSplits('train=0.9,test=0.1')).toEqual([
      { name: 'train', share: 0.9 },
      { name: 'test', share: 0.1 },
    ])
    expect(() => readSplits('train=0.9')).toThrow('add up to 0.9, not 1')
    expect(() => readSplits('train')).toThrow('"train" in "train" is not name=share')
    expect(() => readSplits('a=0.5,a=0.5')).toThrow('names a split twice')
    const names = Array.from({ length: 1000 }, (_, index) =>
      splitOf(`q${index}`, readSplits('train=0.9,test=0.1'), 3),
    )
    const tests = names.filter(name => name === 'test').length
    expect(tests).toBeGreaterThan(70)
    expect(tests).toBeLessThan(130)
  })
})

const renderer = await openByteRenderer()
const recall = (block: number): string => call('recall', { block: block })

/** The numbers of the blocks on the supporting passages, as the policy sees them. */
async function supportingNumbers({ data }: Task<PassageTask>): Promise<readonly number[]> {
  const order = data.passages.map(({ title }) => title)
  return data.supporting.map(title => order.indexOf(title) + 1)
}

describe('taughtSftItem', () => {
  const condense = { condenser, above: 0.75, to: 0.5, trainSummaries: true }
  async function teach(turns: (numbers: readonly number[], answer: string) => readonly string[]) {
    const [task] = made(1)
    const answers = turns(await supportingNumbers(task!), task!.data.answer[0]!)
    const policy = scripted(answers, { encode: text => renderer.tokenizer.encode(text) })
    const item = taughtSftItem(task!, { policy, renderer, condense, concurrency: 2, seed: 1 })
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

describe('condenserPairItem', () => {
  const [task] = made(1)
  const passage = task!.data.passages.find(({ title }) => title === task!.data.supporting[1])!
  const text = `${passage.title}: ${passage.text}`
  const questions = [{ question: task!.data.question, answers: task!.data.answer }]
  const gentle = keywordCondenser({ ratio: 1.3, terms: 30 })

  it('keeps a pair whose question can still be answered', async () => {
    const built = await condenserPairItem(
      { id: 'p', text, questions },
      { condenser: gentle },
    ).build({ signal })
    if (built.kind === 'rejected') throw new Error(`${built.reason} ${built.detail}`)
    const [system, user, assistant] = built.rows[0]!.example.messages
    expect(system!.role).toBe('system')
    expect(textOf(user!.content)).toContain(text)
    expect(textOf(assistant!.content)).toContain(task!.data.answer[0])
    expect(textOf(assistant!.content).length).toBeLessThan(text.length)
    expect(built.rows[0]!.notes).toMatchObject({ asked: 1, retention: 1 })
  })

  it('[D1] rejects pairs that lost the answer, and texts without questions', async () => {
    const lost = condenserPairItem({ id: 'p', text, questions }, { condenser })
    expect(await lost.build({ signal })).toMatchObject({
      reason: 'answers-lost',
      detail: '0 of 1 answered',
    })
    const silent = condenserPairItem({ id: 'p', text, questions: [] }, { condenser: gentle })
    expect(await silent.build({ signal })).toMatchObject({ reason: 'no-question' })
    const wrong = [{ question: 'Who?', answers: ['nobody named here'] }]
    const unanswerable = condenserPairItem(
      { id: 'p', text, questions: wrong },
      { condenser: gentle },
    )
    expect(await unanswerable.build({ signal })).toMatchObject({ reason: 'no-answerable-question' })
  })

  it('asks a model for questions, and lets a judge answer them', async () => {
    const asker = speaking([
      'not JSON',
      `Here: [{"question": "Born?", "answer": "${task!.data.answer[0]}"}]`,
    ])
    const judge = speaking(({ messages }) =>
      textOf(messages[0]!.content).includes(task!.data.answer[0]!)
        ? `In ${task!.data.answer[0]}.`
        : 'unknown',
    )
    const built = await condenserPairItem(
      { id: 'p', text, questions: [] },
      { condenser: gentle, asker, judge },
    ).build({ signal })
    expect(built.kind).toBe('kept')
    expect(asker.asked).toHaveLength(2)
    expect(judge.asked).toHaveLength(2)
  })

  it('reads questions out of what a model says', () => {
    expect(readQuestions('```json\n[{"question":"a","answer":1},{"question":""},7]\n```')).toEqual([
      { question: 'a', answers: ['1'] },
    ])
    expect(readQuestions('none')).toEqual([])
    expect(readQuestions('[{"question"')).toEqual([])
  })
})

describe('measureLoss', () => {
  const probes = made(20).flatMap(({ data }) => {
    const found = data.passages.find(({ title }) => title === data.supporting[1])!
    return [{ text: found.text, question: data.question, answers: data.answer }]
  })

  it('tells what share of questions can still be answered, at which ratio', async () => {
    const reports = await Promise.all(
      [1.2, 2, 4].map(ratio =>
        measureLoss(keywordCondenser({ ratio, terms: 30 }), probes, { signal }),
      ),
    )
    const [light, , heavy] = reports
    expect(light).toMatchObject({ condenser: 'keyword', probes: 20, answerable: 20, failures: 0 })
    expect(light!.retention).toBeGreaterThan(heavy!.retention!)
    expect(heavy!.ratio).toBeGreaterThan(light!.ratio)
    expect(reports.every(({ kept, retention }) => retention === kept / 20)).toBe(true)
  })

  it('keeps everything where nothing is condensed', async () => {
    const none = await measureLoss(keywordCondenser({ minimum: 10_000 }), probes, { signal })
    expect(none).toMatchObject({ retention: 1, ratio: 1 })
  })

  it('lets the condenser know the question where it is asked to', async () => {
    const heard: string[] = []
    const listening: Condenser = {
      ...keywordCondenser(),
      open: () => {
        const condensing: Condensing = {
          condense: async ([opening]) => {
            heard.push(textOf(opening!.content))
            return { kind: 'unchanged' }
          },
          fork: () => condensing,
        }
        return condensing
      },
    }
    for (const tellsQuestion of [false, true]) {
      await measureLoss(listening, probes.slice(0, 1), { signal, tellsQuestion })
    }
    const { text, question } = probes[0]!
    expect(heard).toEqual([text, `Question: ${question}\n\n${text}`])
  })
})

describe('passages', () => {
  it('reads HotpotQA’s own fields in both shapes, and says what is wrong with others', async () => {
    const columns = {
      question: 'Who?',
      answer: 'Ida',
      context: { title: ['A', 'B'], sentences: [['One. ', 'Two.'], ['Three.']] },
      supporting_facts: { title: ['A', 'A'], sent_id: [0, 1] },
    }
    const pairs = {
      question: 'Who?',
      answers: ['Ida', 'Ida M.'],
      context: [['A', ['One. ', 'Two.']]],
      supporting_facts: [['A', 0]],
    }
    const read = []
    for await (const task of readTasks(world, [columns, pairs] as never[], { seed: 0 }))
      read.push(task.data)
    expect(read[0]).toEqual({
      question: 'Who?',
      answer: ['Ida'],
      passages: [
        { title: 'A', text: 'One. Two.' },
        { title: 'B', text: 'Three.' },
      ],
      supporting: ['A'],
    })
    expect(read[1]).toMatchObject({ answer: ['Ida', 'Ida M.'], supporting: ['A'] })
    expect(() => world.readTask({ question: 'Who?' })).toThrow()
  })

  it('makes the same tasks from the same seed, and others from another', () => {
    expect(made(3, 7)).toEqual(made(3, 7))
    expect(made(3, 7)).not.toEqual(made(3, 8))
    for (const { data } of made(20)) {
      const support = data.passages.filter(({ title }) => data.supporting.includes(title))
      expect(support).toHaveLength(2)
      expect(support.map(({ text }) => text).join(' ')).toContain(data.answer[0])
    }
  })
})
