import { type Message, textOf } from '@espalier/text'
import type { Call } from '../../base/core/call.ts'
import type { Condenser, Condensing } from '../../base/core/condenser.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Block } from '../../engine/condensers/blocks.ts'
import { standaloneCall } from '../../engine/condensers/standalone.ts'
import { tellingWords, wordsOf } from '../../engine/condensers/words.ts'
import { type PassageTask, passageOpening } from '../../engine/environments/built-in/passages.ts'
import type { Built, DatasetItem, DatasetRow } from './build.ts'
import { type Need, supportingBlocks } from './needed.ts'

/** What conversations over condensed passages are made with. */
export interface CondensedSftOptions {
  readonly condenser: Condenser
  /** Most blocks that one conversation recalls. @default 6 */
  readonly mostRecalls?: number
}

/** Conversations in which the supporting passages are recalled and the question is answered. */
export function condensedSftItem(
  task: Task<PassageTask>,
  { condenser, mostRecalls = 6 }: CondensedSftOptions,
): DatasetItem {
  return {
    id: task.id,
    async build(call) {
      const problem = problemWith(task.data)
      if (problem) return problem
      const opened = await condenseOpening(passageOpening(task.data), condenser, call)
      if ('kind' in opened) return opened
      return showRecalls(task, opened, mostRecalls)
    },
  }
}

/** Filters that need no condensing. */
export function problemWith({ supporting, passages, answer }: PassageTask): Built | undefined {
  if (supporting.length === 0) return rejected('no-supporting-passages')
  const titles = new Set(passages.map(({ title }) => title))
  const missing = supporting.find(title => !titles.has(title))
  if (missing !== undefined) return rejected('supporting-passage-missing', missing)
  const text = passages
    .map(passage => passage.text)
    .join('\n')
    .toLowerCase()
  const isThere = answer.some(each => text.includes(each.toLowerCase()) || /^(yes|no)$/i.test(each))
  return isThere ? undefined : rejected('answer-in-no-passage', answer.join(', '))
}

/** A rejection with a reason that can be counted. */
export function rejected(reason: string, detail?: string): Extract<Built, { kind: 'rejected' }> {
  return { kind: 'rejected', reason, ...(detail !== undefined && { detail }) }
}

/** An opening that was condensed, with the blocks that can be recalled. */
export interface CondensedOpening {
  readonly shown: readonly Message[]
  readonly condensing: Condensing
  readonly blocks: readonly Block[]
  readonly figures: Readonly<Record<string, number>>
}

/** Condenses an opening outside of a rollout; rejected if nothing becomes shorter. */
export async function condenseOpening(
  opening: readonly Message[],
  condenser: Condenser,
  { signal }: Call,
): Promise<CondensedOpening | Extract<Built, { kind: 'rejected' }>> {
  const condensing = condenser.open()
  const condensed = await condensing.condense(opening, standaloneCall(opening.length, { signal }))
  if (condensed.kind === 'unchanged') return rejected('nothing-condensed', condensed.problem)
  if (!condensing.recall) return rejected('no-recall')
  const { messages: shown, figures = {} } = condensed
  return { shown, condensing, figures, blocks: recallAll(condensing, figures.blocks ?? 0) }
}

/** What the recall tool itself gives back, block by block. */
function recallAll({ recall }: Condensing, count: number): readonly Block[] {
  const blocks: Block[] = []
  for (let number = 1; blocks.length < count && number <= 10 * count; number++) {
    const { content, recalled } = recall!.answer({ block: number }, [])
    if (recalled) blocks.push({ number, original: content, turn: 0 })
  }
  return blocks
}

/** Recalls each block that the answer needs, one a turn, and answers. */
function showRecalls(
  task: Task<PassageTask>,
  { shown, condensing, blocks, figures }: CondensedOpening,
  mostRecalls: number,
): Built {
  const { question, answer, passages, supporting } = task.data
  const support = passages.filter(({ title }) => supporting.includes(title))
  const texts = support.map(({ title, text }) => `${title}: ${text}`)
  const all = supportingBlocks(blocks, shown, { texts, matter: `${question} ${answer[0]}` })
  const needed = fromQuestion(all, question)
  if (needed.length > mostRecalls) return rejected('too-many-recalls', String(needed.length))
  const { definition, answer: recall } = condensing.recall!
  const messages: Message[] = [...shown]
  needed.forEach(({ block }, index) => {
    const id = `call_${index + 1}`
    const title = block.original.split(':')[0]!.slice(0, 80)
    const call = {
      name: definition.function.name,
      arguments: recallArguments(condensing, block.number),
    }
    messages.push(
      {
        role: 'assistant',
        content: `Block ${block.number}, on ${title}, matters here but is shown in short only.`,
        tool_calls: [{ id, type: 'function', function: call }],
      },
      {
        role: 'tool',
        tool_call_id: id,
        name: definition.function.name,
        content: recall({ block: block.number }, messages).content,
      },
    )
  })
  messages.push({ role: 'assistant', content: conclude(task.data, support) })
  return {
    kind: 'kept',
    rows: [toRow(task, messages, { condensing, figures, recalls: needed.length })],
  }
}

/** The arguments of a call that recalls a block, as JSON with Python's spaces. */
export function recallArguments({ recall }: Condensing, number: number): string {
  const { required } = recall!.definition.function.parameters as { required: readonly string[] }
  return `{"${required[0]}": ${number}}`
}

/** Puts the passage that the question names before those that it leads to. */
function fromQuestion(needed: readonly Need[], question: string): readonly Need[] {
  const asked = tellingWords(question)
  const shared = ({ block }: Need): number =>
    new Set(wordsOf(block.original).filter(word => asked.has(word))).size
  return needed.toSorted((a, b) => shared(b) - shared(a))
}

/** The sentences of the supporting passages that tell the answer, and the answer. */
function conclude({ answer }: PassageTask, support: readonly { readonly text: string }[]): string {
  const wanted = answer[0]!.toLowerCase()
  const telling = support
    .flatMap(({ text }) => text.split(/(?<=[.!?])\s+/))
    .filter(sentence => sentence.toLowerCase().includes(wanted))
  const because =
    telling.length > 0 ? `The passage says: ${telling[0]!.trim()}` : 'From what I read:'
  return `${because}\n\\boxed{${answer[0]}}`
}

/** A conversation as a row of the set. */
export function toRow(
  task: Task<PassageTask>,
  messages: readonly Message[],
  made: {
    readonly condensing: Condensing
    readonly figures: Readonly<Record<string, number>>
    readonly recalls: number
    readonly notes?: DatasetRow['notes']
  },
): DatasetRow {
  const { characters = 0, condensed = 0, blocks = 0 } = made.figures
  const ratio = condensed === 0 ? 1 : characters / condensed
  return {
    id: task.id,
    key: contentKey(messages),
    subject: task.data.question,
    example: { messages, tools: [made.condensing.recall!.definition] },
    notes: { blocks, ratio, recalls: made.recalls, ...made.notes },
  }
}

/** The key of a conversation: what was asked and what was answered. */
export function contentKey(messages: readonly Message[]): string {
  const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))
  const last = messages.findLast(({ role }) => role === 'assistant')
  const texts = [...asked, last ? textOf(last.content) : '']
  return texts.map(text => text.trim().toLowerCase().replace(/\s+/g, ' ')).join('\n')
}
