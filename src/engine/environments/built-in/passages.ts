import type { Message } from '@espalier/text'
import { z } from 'zod'
import { isExactAnswer } from '../../../base/core/answer.ts'
import type { Environment } from '../../../base/core/environment.ts'
import { environment } from '../environment.ts'
import { lateSchema } from '../late.ts'
import { makePassageTasks } from './passage-tasks.ts'

function makeSchema() {
  const passage = z.union([
    z.string().transform(text => ({ title: '', text })),
    z.object({ title: z.string().default(''), text: z.string() }),
  ])
  const oneAnswer = z.union([z.string(), z.number().transform(String)])
  return z.preprocess(
    fromOtherShapes,
    z.object({
      question: z.string().min(1),
      answer: z.union([oneAnswer.transform(answer => [answer]), z.array(oneAnswer).min(1)]),
      passages: z.array(passage).min(1),
      /** Titles of the passages that the answer needs. */
      supporting: z.array(z.string()).default([]),
    }),
  )
}

const passageTask = lateSchema(makeSchema)

/** A question with the passages that answer it, among others. */
export type PassageTask = z.output<ReturnType<typeof makeSchema>>

/** The instructions before the question. */
export const passageInstructions =
  'Answer the question from the passages below. Say in a few words how you know, and give the ' +
  'answer itself, as short as it can be, in \\boxed{…} at the end.'

/** What tasks open with. */
export interface PassagesOptions {
  /** @default the same for every task: to answer in few words */
  readonly instructions?: (task: PassageTask) => string
}

/** Questions over several passages, rewarded if the final answer is right. */
export function passages(options: PassagesOptions = {}): Environment<PassageTask> {
  const { instructions = () => passageInstructions } = options
  return environment({
    name: 'passages',
    task: passageTask,
    open: ({ data }) => ({ opening: passageOpening(data, instructions(data)) }),
    reward: { right: ({ task, answer }) => Number(isExactAnswer(answer, task.data)) },
    makeTasks: makePassageTasks,
    splits: ['train', 'test'],
  })
}

/** The messages that a task opens with; passages are separated by blank lines. */
export function passageOpening(
  { question, passages: all }: PassageTask,
  instructions = passageInstructions,
): readonly [Message, Message] {
  const texts = all.map(({ title, text }) => (title === '' ? text : `${title}: ${text}`))
  const content = `Question: ${question}\n\nContext:\n\n${texts.join('\n\n')}`
  return [
    { role: 'system', content: instructions },
    { role: 'user', content },
  ]
}

/** Reads HotpotQA's names and shapes, in both of its published forms. */
function fromOtherShapes(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  const { context, supporting_facts: facts, answers, ...rest } = entry as Record<string, unknown>
  return {
    ...rest,
    ...(rest.answer === undefined && answers !== undefined && { answer: answers }),
    ...(rest.passages === undefined && context !== undefined && { passages: readContext(context) }),
    ...(rest.supporting === undefined && facts !== undefined && { supporting: readFacts(facts) }),
  }
}

function readContext(context: unknown): unknown {
  const pairs = Array.isArray(context) ? context : zip(context, 'title', 'sentences')
  if (!Array.isArray(pairs)) return context
  return pairs.map(pair => {
    if (!Array.isArray(pair) || !Array.isArray(pair[1])) return pair as unknown
    return { title: pair[0] as unknown, text: pair[1].join('').trim() }
  })
}

function readFacts(facts: unknown): unknown {
  const pairs = Array.isArray(facts) ? facts : zip(facts, 'title', 'sent_id')
  if (!Array.isArray(pairs)) return facts
  return [...new Set(pairs.map(pair => (Array.isArray(pair) ? (pair[0] as unknown) : pair)))]
}

/** Columns as pairs. */
function zip(columns: unknown, first: string, second: string): unknown {
  const { [first]: names, [second]: values } = columns as Record<string, unknown>
  if (!Array.isArray(names) || !Array.isArray(values)) return columns
  return names.map((name, index) => [name, values[index]] as const)
}
