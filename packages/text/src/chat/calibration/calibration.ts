import type { Message } from '../../message.ts'
import type { ControlToken } from '../../tokenizers/tokenizer.ts'
import type { Chat } from '../chat.ts'
import { type CallEnding, type Ending, findCallEnding, findSpokenEnding, snap } from './ending.ts'
import { findLimits, takesSystem } from './limits.ts'
import { findBridgeNeeds, groupingOf } from './observations.ts'
import {
  after,
  again,
  asked,
  commonPrefix,
  commonSuffix,
  contentMark,
  type Probe,
  probeTool,
  spokenTurn,
  thoughtMark,
  withoutThought,
} from './probe.ts'
import { findRewrites, type Rewrite } from './rewrites.ts'

/** What probing a chat template with synthetic conversations found out. */
export interface Profile {
  /** The text that opens the policy's turn; '' if the message before it already does. */
  readonly generationPrompt: string
  /** Whether a policy begins its turn within a thinking block. */
  readonly opensThinking: boolean
  /** The white space that the template puts before the words of a turn. */
  readonly lead: string
  /** What stands around the thinking of a turn; undefined if history shows none. */
  readonly thinking: ThinkingBorders | undefined
  /** How a turn that only speaks ends. */
  readonly spoken: Ending
  /** How a turn that calls ends; undefined if the template shows no such turn. */
  readonly called: CallEnding | undefined
  /** The control strings at which a sample stops. */
  readonly stops: readonly string[]
  /** What stands between the end of a turn and the next message. */
  readonly separator: string
  /**
   * Whether tokens can merge with their neighbours where a turn begins and where it ends: a control
   * token never does, so that a re-encoding of the text gives the same tokens there.
   */
  readonly borders: { readonly opening: Border; readonly closing: Border }
  /** Whether a conversation may begin with a system message. */
  readonly takesSystem: boolean
  /** Whether tools on offer are shown to the policy. */
  readonly offersTools: boolean
  /** Whether the template refuses conversations without tools. */
  readonly needsTools: boolean
  /** How several tool results in a row are written. */
  readonly toolResults: 'grouped' | 'separate' | 'single' | 'unsupported'
  /** What changes the tokens between two turns besides the messages there. */
  readonly bridgeNeeds: { readonly tools: boolean; readonly history: boolean }
  /** Where the template does not show history as it was seen and sampled. */
  readonly rewrites: readonly Rewrite[]
  /** What this template cannot serve, in words. */
  readonly limits: readonly string[]
  /** What defeats exact tokens, in words. */
  readonly problems: readonly string[]
}

/** How a template sets thinking apart from what follows it. */
export interface ThinkingBorders {
  /** The white space before the first thought. */
  readonly lead: string
  /** What stands between the last thought and the first word. */
  readonly end: string
}

/** Where tokens meet: at a control token, or in the middle of text. */
export type Border = 'control' | 'text'

/** What calibration needs besides the template. */
export interface CalibrationOptions {
  readonly controls: readonly ControlToken[]
  /** Whether a text after this one would be thinking, as the model's reasoning format reads it. */
  readonly endsInThinking: (text: string) => boolean
}

const noEnding: Ending = { tail: '', stop: '', sampledStop: '', isOpening: false }

/** Probes a template. */
export function calibrate(chat: Chat, options: CalibrationOptions): Profile {
  const { probe, needsTools, error } = makeProbe(chat, options.controls)
  const prompt = findPrompt(probe)
  const spoken = error ? undefined : findSpokenEnding(probe)
  const called = error ? undefined : findCallEnding(probe, spoken ?? noEnding)
  const endings = { spoken, called }
  const stops = stopsOf([spoken, called, called?.several])
  const toolResults = called ? groupingOf(probe, called) : 'unsupported'
  const offersTools = showsTools(probe)
  return {
    generationPrompt: prompt.generation,
    lead: leadOf(probe, prompt.text),
    ...findThinking(probe, prompt.text, options),
    spoken: spoken ?? noEnding,
    called: toolResults === 'unsupported' ? undefined : called,
    stops,
    separator: separatorOf(probe, spoken),
    borders: {
      opening: probe.controls.some(control => prompt.text.endsWith(control)) ? 'control' : 'text',
      closing: stops.length > 0 ? 'control' : 'text',
    },
    takesSystem: takesSystem(probe),
    offersTools,
    needsTools,
    toolResults,
    bridgeNeeds: findBridgeNeeds(probe, { called, needsTools }),
    rewrites: findRewrites(probe, endings),
    limits: error
      ? []
      : findLimits(probe, { ...endings, toolResults, offersTools, needsTools, stops }),
    problems: findProblems({ error, spoken, prompt, stops }),
  }
}

interface OpenedProbe {
  readonly probe: Probe
  readonly needsTools: boolean
  /** The template's error for the plainest question, if it refuses even that. */
  readonly error: Error | undefined
}

function makeProbe(chat: Chat, tokens: readonly ControlToken[]): OpenedProbe {
  const controls = tokens
    .map(({ content }) => content)
    .filter(content => content.trim() !== '')
    .sort((a, b) => b.length - a.length)
  const text: Probe['text'] = (messages, { opens = false, tools = false } = {}) =>
    tryRender(chat, { messages, opens, tools })
  const plain = text([asked], { opens: true })
  const needsTools =
    typeof plain !== 'string' && typeof text([asked], { opens: true, tools: true }) === 'string'
  const always: Probe['text'] = needsTools
    ? (messages, options) => text(messages, { ...options, tools: true })
    : text
  const probe = withoutTrailer({ text: always, controls })
  const error = !needsTools && typeof plain !== 'string' ? plain : undefined
  return { probe, needsTools, error }
}

function tryRender(
  chat: Chat,
  given: { messages: readonly Message[]; opens: boolean; tools: boolean },
): string | Error {
  const { messages, opens, tools } = given
  try {
    return chat.render({ messages, tools: tools ? [probeTool] : [], opensTurn: opens }).text
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function stopsOf(endings: readonly (Ending | undefined)[]): readonly string[] {
  const stops = endings.map(ending => ending?.sampledStop ?? '')
  return [...new Set(stops)].filter(stop => stop !== '')
}

/** Cuts off what some templates write behind every text: the next turn's opening, instructions. */
function withoutTrailer(probe: Probe): Probe {
  const trailer = findTrailer(probe)
  if (trailer === '') return probe
  return {
    ...probe,
    text(messages, options = {}) {
      const text = probe.text(messages, options)
      if (options.opens || typeof text !== 'string' || !text.endsWith(trailer)) return text
      return text.slice(0, -trailer.length)
    },
  }
}

/** What follows the closer of any last message and is gone once another message follows it. */
function findTrailer({ text, controls }: Probe): string {
  const plain = text([asked])
  const answered = text([asked, spokenTurn])
  const followed = text([asked, spokenTurn, again])
  if ([plain, answered, followed].some(each => typeof each !== 'string')) return ''
  const shared = commonSuffix(plain as string, answered as string)
  const closer = controls.find(control => shared.startsWith(control))
  const between = (after(followed, contentMark) ?? '').split(again.content)[0]!
  return closer === undefined || between.includes(shared) ? '' : shared.slice(closer.length)
}

/** The text before a turn, and what of it only serves to open the turn. */
interface Prompt {
  readonly text: string
  readonly generation: string
}

function findPrompt({ text, controls }: Probe): Prompt {
  const closed = text([asked])
  const open = text([asked], { opens: true })
  if (typeof open !== 'string') return { text: '', generation: '' }
  if (typeof closed !== 'string') return { text: open, generation: '' }
  const shared = commonPrefix(closed, open).length
  return { text: open, generation: open.slice(snap(open, shared, controls)) }
}

/**
 * A prompt opens a thinking block where history writes the same before a turn's thinking; where
 * history shows no thinking, the model's format has to tell.
 */
function findThinking(
  probe: Probe,
  prompt: string,
  { endsInThinking }: CalibrationOptions,
): Pick<Profile, 'opensThinking' | 'thinking'> {
  const shown = probe.text([asked, spokenTurn])
  const plain = probe.text([asked, withoutThought(spokenTurn)])
  if (typeof shown !== 'string' || typeof plain !== 'string' || !shown.includes(thoughtMark)) {
    return { opensThinking: endsInThinking(prompt), thinking: undefined }
  }
  const before = (text: string, mark: string): string => text.slice(0, text.indexOf(mark))
  const start = before(shown, thoughtMark)
  const end = before(after(shown, thoughtMark) ?? '', contentMark)
  const isOpened = prompt.trimEnd() === start.trimEnd()
  return {
    opensThinking: isOpened && start.trimEnd() !== before(plain, contentMark).trimEnd(),
    thinking: { lead: start.slice(start.trimEnd().length), end },
  }
}

function leadOf({ text }: Probe, prompt: string): string {
  const plain = text([asked, withoutThought(spokenTurn)])
  if (typeof plain !== 'string' || !plain.startsWith(prompt)) return ''
  const lead = plain.slice(prompt.length, plain.indexOf(contentMark))
  return lead.trim() === '' ? lead : ''
}

function separatorOf({ text }: Probe, spoken: Ending | undefined): string {
  if (!spoken || spoken.sampledStop === '') return ''
  const rest = after(text([asked, spokenTurn]), contentMark) ?? ''
  const at = rest.lastIndexOf(spoken.sampledStop)
  return at < 0 ? '' : rest.slice(at + spoken.sampledStop.length)
}

function showsTools({ text }: Probe): boolean {
  const shown = text([asked], { opens: true, tools: true })
  return typeof shown === 'string' && shown.includes(probeTool.function.name)
}

function findProblems(found: {
  readonly error: Error | undefined
  readonly spoken: Ending | undefined
  readonly prompt: Prompt
  readonly stops: readonly string[]
}): readonly string[] {
  const { error, spoken, prompt, stops } = found
  if (error) return [`the template cannot render a plain question: ${error.message}`]
  if (!spoken) return ['the template cannot render a question and its answer']
  const problems: string[] = []
  if (prompt.generation.includes(asked.content)) {
    problems.push('asking for a turn changes the text of the question before it')
  }
  if (stops.length === 0) {
    problems.push(
      'no control token stands at the end of a turn, so a sample ends only at a limit or a stop string',
    )
  }
  return problems
}
