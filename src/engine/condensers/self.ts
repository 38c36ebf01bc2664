import { type Message, textOf } from '@espalier/text'
import type { CondenseCall, Condensed, Condenser, Condensing } from '../../base/core/condenser.ts'
import { describeCause } from '../../base/core/failure.ts'
import { codePoints } from './chunk.ts'
import { cleanAnswer } from './model.ts'
import { defaultSummaryPrompt, fillPrompt } from './prompts.ts'
import { trimText, trimToFit } from './trim.ts'
import {
  describeTurns,
  goneNote,
  leaveOutOldest,
  type Turns,
  toMessages,
  turnsOf,
} from './turns.ts'

/** How the policy summarises its own conversation. */
export interface SelfOptions {
  /** Most tokens of a summary. @default 512 */
  readonly tokens?: number
  /** Turns, counted from the last, that stay beside the summary. @default 1 */
  readonly keep?: number
  /** How often a summary that is cut or empty is asked for. @default 2 */
  readonly tries?: number
  /** The prompt; `{tokens}` is filled in. */
  readonly prompt?: string
}

const defaults = { tokens: 512, keep: 1, tries: 2, prompt: defaultSummaryPrompt }

/** The fewest tokens that a summary is given. */
const leastTokens = 32

/** Lets the policy write down what it needs; its notes then stand instead of the older turns. */
export function selfCondenser(options: SelfOptions = {}): Condenser {
  const settings = { ...defaults, ...options }
  const lowest = { tokens: leastTokens, keep: 1, tries: 1 } as const
  for (const name of ['tokens', 'keep', 'tries'] as const) {
    if (settings[name] >= lowest[name]) continue
    throw new RangeError(`self: ${name} is ${settings[name]}; at least ${lowest[name]}.`)
  }
  const condensing: Condensing = {
    condense: (messages, call) => summarise(messages, call, settings),
    fork: () => condensing,
  }
  return { name: 'self', condensesOpenings: false, open: () => condensing }
}

async function summarise(
  messages: readonly Message[],
  call: CondenseCall,
  settings: Required<SelfOptions>,
): Promise<Condensed> {
  const { opening, turns, note } = turnsOf(messages, call)
  if (turns.length <= settings.keep) return trimmed(messages, call)
  const rest = { opening, turns: turns.slice(-settings.keep) }
  const room = call.tokens - call.count(toMessages(rest))
  const tokens = Math.max(leastTokens, Math.min(settings.tokens, room))
  const older = {
    opening,
    turns: turns.slice(0, -settings.keep),
    ...(note !== undefined && { note }),
  }
  const summary = await askForSummary(older, call, { ...settings, tokens })
  if ('problem' in summary) return { kind: 'unchanged', problem: summary.problem }
  const left = leaveOutOldest({ opening, turns }, call, {
    most: settings.keep,
    note: count => `Your own notes on ${describeTurns(count)}:\n${summary.text}`,
  })
  return {
    kind: 'rewritten',
    messages: trimToFit(left.messages, call),
    reason: `the policy summarised ${describeTurns(left.count)}`,
    figures: { leftOut: left.count },
  }
}

/** With nothing to summarise, tool outputs are all that can be shortened. */
function trimmed(messages: readonly Message[], call: CondenseCall): Condensed {
  const shown = trimToFit(messages, call)
  if (shown.every((each, index) => each === messages[index])) return { kind: 'unchanged' }
  return { kind: 'rewritten', messages: shown, reason: 'tool outputs trimmed' }
}

type Summary = { readonly text: string } | { readonly problem: string }

async function askForSummary(
  older: Turns,
  call: CondenseCall,
  { tokens, tries, prompt }: Required<SelfOptions>,
): Promise<Summary> {
  const question = fillPrompt(prompt, { tokens: String(tokens) })
  const asked = askable(older, question, { ...call, tokens: call.context - tokens })
  let cut = ''
  try {
    for (let attempt = 0; attempt < tries; attempt++) {
      const speech = await call.self.say(asked, { signal: call.signal, maxTokens: tokens })
      const text = cleanAnswer(textOf(speech.message.content))
      if (speech.finish === 'stop' && text !== '') return { text }
      if (text.length > cut.length) cut = text
    }
  } catch (cause) {
    call.signal.throwIfAborted()
    return { problem: describeCause(cause) }
  }
  return cut === '' ? { problem: 'the policy wrote no summary' } : { text: `${cut}…` }
}

/** The messages that ask for a summary; a transcript if the template refuses a question at this place. */
function askable(older: Turns, question: string, call: CondenseCall): readonly Message[] {
  try {
    return fitQuestion(older, question, call)
  } catch {
    const lines = toMessages(older, older.note).map(({ role, content }) =>
      JSON.stringify({ role, said: textOf(content) }),
    )
    const transcript = lines.join('\n')
    const asking = (text: string): readonly Message[] => [
      { role: 'user', content: `${text}\n\n${question}` },
    ]
    let characters = codePoints(transcript)
    while (characters > 64 && call.count(asking(trimText(transcript, characters))) > call.tokens) {
      characters = Math.floor(characters * 0.8)
    }
    return asking(trimText(transcript, characters))
  }
}

/** The older turns with the question at their end, shortened if there is no room to answer it. */
function fitQuestion(older: Turns, question: string, call: CondenseCall): readonly Message[] {
  const { note } = older
  const asked = withQuestion(toMessages(older, note), question)
  const trimmed = trimToFit(asked, call)
  if (call.count(trimmed) <= call.tokens) return trimmed
  const kept = older.turns.length
  const left = leaveOutOldest(
    older,
    {
      ...call,
      turn: kept,
      count: messages => call.count(withQuestion(messages, question)),
    },
    // Earlier notes are all that is left of the turns before: they must not get lost.
    { note: count => [...(note === undefined ? [] : [note]), goneNote(count)].join('\n') },
  )
  const shorter = left.count === 0 ? toMessages(older, note) : left.messages
  return trimToFit(withQuestion(shorter, question), call)
}

/** Two messages of the user in a row confuse many templates, so the question joins the last one. */
function withQuestion(messages: readonly Message[], question: string): readonly Message[] {
  const last = messages.at(-1)
  if (last?.role !== 'user') return [...messages, { role: 'user', content: question }]
  const { content } = last
  const joined =
    typeof content === 'string'
      ? `${content}\n\n${question}`
      : [...content, { type: 'text', text: `\n\n${question}` } as const]
  return [...messages.slice(0, -1), { ...last, content: joined }]
}
