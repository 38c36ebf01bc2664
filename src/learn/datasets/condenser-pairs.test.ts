import { textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { speaking } from '../../../test/condensing.ts'
import { condenser, made, signal, world } from '../../../test/datasets.ts'
import type { Condenser, Condensing } from '../../base/core/condenser.ts'
import { keywordCondenser } from '../../engine/condensers/keyword.ts'
import { measureLoss } from '../../engine/condensers/probe.ts'
import { readTasks } from '../../run/tasks/tasks.ts'
import { condenserPairItem, readQuestions } from './condenser-pairs.ts'

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
