import { textOf } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { Condenser } from '../../base/core/condenser.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { blocksIn } from '../../engine/condensers/blocks.ts'
import { codePoints } from '../../engine/condensers/chunk.ts'
import { isAnswered, type Probe } from '../../engine/condensers/probe.ts'
import {
  type CondensePrompts,
  defaultPrompts,
  fillPrompt,
} from '../../engine/condensers/prompts.ts'
import type { Built, DatasetItem, DatasetRow } from './build.ts'
import { condenseOpening, rejected } from './condensed-sft.ts'

/** A text to condense, with questions that it answers, if they are known. */
export interface PassageText {
  readonly id: string
  readonly text: string
  readonly questions: readonly Omit<Probe, 'text'>[]
}

/** How pairs are made and judged. */
export interface PairOptions {
  readonly condenser: Condenser
  /** Proposes questions for texts that have none. */
  readonly asker?: Speaker
  /** Answers questions from condensed texts. @default nobody: an answer counts where it stands there */
  readonly judge?: Speaker
  /** The least share of questions that the condensed text still answers. @default 0.5 */
  readonly least?: number
  /** Questions to propose for a text. @default 3 */
  readonly questions?: number
  /** The prompts of the condenser that is trained on these pairs. */
  readonly prompts?: Partial<CondensePrompts>
}

type Settings = PairOptions & { readonly least: number; readonly questions: number }

/** Originals and what they were condensed to, kept where questions can still be answered. */
export function condenserPairItem(passage: PassageText, options: PairOptions): DatasetItem {
  const settings: Settings = { least: 0.5, questions: 3, ...options }
  return {
    id: passage.id,
    async build(call) {
      const questions = await questionsOf(passage, settings, call)
      if (questions.length === 0) return rejected('no-question')
      const only = questions.length === 1 ? `Question: ${questions[0]!.question}\n\n` : ''
      const opening = [{ role: 'user', content: only + passage.text } as const]
      const opened = await condenseOpening(opening, settings.condenser, call)
      if ('kind' in opened) return opened
      const condensed = blocksIn(opened.shown)
      const pairs = await Promise.all(
        opened.blocks.map(({ number, original }) =>
          judgePair({ original, condensed: condensed.get(number)!, questions }, settings, call),
        ),
      )
      return together(passage, pairs, settings)
    },
  }
}

interface Pair {
  readonly original: string
  readonly condensed: string
  readonly questions: readonly Question[]
}

type Judged = (Pair & { readonly retention: number }) | Extract<Built, { kind: 'rejected' }>

/** Whether what can be answered from the original can be answered from the condensed text. */
async function judgePair(pair: Pair, settings: Settings, call: Call): Promise<Judged> {
  const asking = { ...call, judge: settings.judge }
  const questions = await answerable(pair.original, pair.questions, asking)
  if (questions.length === 0) return rejected('no-answerable-question')
  const kept = await answerable(pair.condensed, questions, asking)
  const retention = kept.length / questions.length
  if (retention >= settings.least) return { ...pair, questions, retention }
  return rejected('answers-lost', `${kept.length} of ${questions.length} answered`)
}

/** A passage is rejected if all its chunks are, for the reason of the first. */
function together({ id }: PassageText, pairs: readonly Judged[], settings: Settings): Built {
  const kept = pairs.flatMap(pair => ('kind' in pair ? [] : [pair]))
  const [first] = pairs
  if (kept.length === 0 && first && 'kind' in first) return first
  return {
    kind: 'kept',
    rows: kept.map((pair, index) => toRow(kept.length > 1 ? `${id}#${index}` : id, pair, settings)),
  }
}

type Question = Omit<Probe, 'text'>

async function answerable(
  text: string,
  questions: readonly Question[],
  { judge, signal }: Call & { readonly judge: Speaker | undefined },
): Promise<readonly Question[]> {
  const speaker = judge && { speaker: judge }
  const results = await Promise.all(
    questions.map(question => isAnswered(question, text, { signal, ...speaker })),
  )
  return questions.filter((_, index) => results[index])
}

async function questionsOf(
  { text, questions }: PassageText,
  { asker, questions: count }: Settings,
  { signal }: Call,
): Promise<readonly Question[]> {
  if (questions.length > 0 || !asker) return questions
  const content =
    `Write ${count} questions whose short answers stand word for word in the text between the lines of ` +
    'dashes. Answer with a JSON array of objects {"question": "…", "answer": "…"} and nothing else.\n' +
    `-----\n${text}\n-----`
  for (let attempt = 0; attempt < 2; attempt++) {
    const temperature = attempt === 0 ? 0 : 0.7
    const call = { signal, temperature, seed: attempt, maxTokens: 1024 }
    const { message } = await asker.say([{ role: 'user', content }], call)
    const read = readQuestions(textOf(message.content))
    if (read.length > 0) return read
  }
  return []
}

/** The questions in an answer: the JSON array that it holds. */
export function readQuestions(text: string): readonly Question[] {
  const [start, end] = [text.indexOf('['), text.lastIndexOf(']')]
  if (start < 0 || end < start) return []
  try {
    const list: unknown = JSON.parse(text.slice(start, end + 1))
    return Array.isArray(list) ? list.flatMap(readQuestion) : []
  } catch {
    return []
  }
}

function readQuestion(entry: unknown): readonly Question[] {
  if (typeof entry !== 'object' || entry === null) return []
  const { question, answer } = entry as { readonly question?: unknown; readonly answer?: unknown }
  const isAnswer = typeof answer === 'string' || typeof answer === 'number'
  if (typeof question !== 'string' || question === '' || !isAnswer) return []
  return [{ question, answers: [String(answer)] }]
}

function toRow(
  id: string,
  { original, condensed, questions, retention }: Pair & { readonly retention: number },
  settings: Settings,
): DatasetRow {
  const prompts = { ...defaultPrompts, ...settings.prompts }
  const query = questions.length === 1 ? questions[0]!.question : prompts.noQuery
  // The prompt's budget is the answer's own length, so that the pair teaches to keep to it.
  const budget = String(Math.max(50, Math.ceil(codePoints(condensed) / 50) * 50))
  const user = fillPrompt(prompts.user, { text: original, query, budget })
  return {
    id,
    key: original.trim().toLowerCase().replace(/\s+/g, ' '),
    subject: original,
    example: {
      messages: [
        { role: 'system', content: prompts.system },
        { role: 'user', content: user },
        { role: 'assistant', content: condensed },
      ],
    },
    notes: {
      ratio: codePoints(original) / codePoints(condensed),
      asked: questions.length,
      retention,
    },
  }
}
