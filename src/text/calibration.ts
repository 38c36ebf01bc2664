import type { AssistantMessage, Message, ToolDefinition, ToolMessage } from '../core/message.ts'
import type { Chat } from './chat.ts'
import type { ControlToken } from './tokenizer.ts'

/** What probing a chat template with synthetic conversations found out. */
export interface Profile {
  /** What is written to let the policy begin a turn. */
  readonly generationPrompt: string
  /** Whether that already opens a thinking block. */
  readonly opensThinking: boolean
  /** The control strings that close a turn; empty where the next message's opening does. */
  readonly closers: readonly string[]
  /** The control strings at which a sample stops: the closers, or the openings that follow a turn. */
  readonly stops: readonly string[]
  /** What stands between the end of a turn's closer and the next message. */
  readonly separator: string
  /** What follows the last words of a turn that only speaks, before its closer. */
  readonly contentTail: string
  /** What follows the last argument of a turn that calls, before its closer; `undefined`: no calls. */
  readonly callTail: string | undefined
  /** Whether every border between turns is a control token, so that tokens cannot merge across it. */
  readonly border: 'control' | 'text'
  /** How several tool results in a row are written. */
  readonly toolResults: 'grouped' | 'separate' | 'unsupported'
  /** Whether the tokens between two turns change with the tools on offer. */
  readonly bridgeNeedsTools: boolean
  /** Earlier text that a new message changes, in words; empty where the template only appends. */
  readonly rewrites: readonly string[]
  /** What defeats exact tokens, in words. */
  readonly problems: readonly string[]
}

/** A word that no template writes by itself. */
const word = 'qzprobe'
const contentMark = `${word}said`
const argumentMark = `${word}argued`

/** A probing tool, offered where a template must be shown one. */
export const probeTool: ToolDefinition = {
  type: 'function',
  function: {
    name: `${word}tool`,
    description: 'A tool.',
    parameters: { type: 'object', properties: { probe: { type: 'string' } }, required: ['probe'] },
  },
}

/** The synthetic beginning behind which bridges are computed: a question and a turn that answers it. */
export function probePrefix(observed: readonly Message[]): readonly Message[] {
  const results = observed.filter((message): message is ToolMessage => message.role === 'tool')
  return [{ role: 'user', content: `${word}asked` }, probeTurn(results)]
}

function probeTurn(results: readonly ToolMessage[]): AssistantMessage {
  const content = results.length > 0 ? '' : contentMark
  const turn = { role: 'assistant', content, reasoning_content: `${word}thought` } as const
  if (results.length === 0) return turn
  const tool_calls = results.map(({ tool_call_id: id, name = probeTool.function.name }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify({ probe: argumentMark }) },
  }))
  return { ...turn, tool_calls }
}

/** Where the synthetic turn's last word ends in a rendering of it; -1 where it is not there. */
export function endOfProbe(text: string, hasCalls: boolean): number {
  const mark = hasCalls ? argumentMark : contentMark
  const at = text.lastIndexOf(mark)
  return at < 0 ? -1 : at + mark.length
}

const asked: Message = { role: 'user', content: `${word}asked` }
const again: Message = { role: 'user', content: `${word}again` }
const result = (index: number): ToolMessage => ({
  role: 'tool',
  tool_call_id: `probe000${index}`,
  name: probeTool.function.name,
  content: `${word}result${index}`,
})

/** Probes a template. */
export function calibrate(chat: Chat, controls: readonly ControlToken[]): Profile {
  const problems: string[] = []
  const strings = controls.map(control => control.content)
  const text = (
    messages: readonly Message[],
    options: { opens?: boolean; tools?: boolean } = {},
  ) => {
    const { opens = false, tools = false } = options
    const request = { messages, tools: tools ? [probeTool] : [], opensTurn: opens }
    try {
      return chat.render(request).text
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
  const always = alwaysOpened({ text, strings, problems })
  const probe: Probe = { text: always === '' ? text : cutting(text, always), strings, problems }
  const generationPrompt = findGenerationPrompt(probe)
  const spoken = probeEnding(probe, [])
  const called = probeEnding(probe, [result(1)])
  const closers = [...new Set([...spoken.closers, ...called.closers])]
  const stops = [...new Set([...closers, spoken.next, called.next])].filter(stop => stop !== '')
  if (stops.length === 0) problems.push('no control token stands at the end of a turn')
  return {
    generationPrompt,
    opensThinking:
      /<(think|seed:think|thinking)>\s*$|<\|(?:START_THINKING|inner_prefix)\|>\s*$/.test(
        generationPrompt,
      ),
    closers,
    stops,
    separator: spoken.separator,
    contentTail: spoken.tail,
    callTail: called.isSupported ? called.tail : undefined,
    border: stops.length > 0 ? 'control' : 'text',
    toolResults: groupingOf(probe, called.isSupported),
    bridgeNeedsTools: needsTools(probe),
    rewrites: findRewrites(probe),
    problems,
  }
}

interface Probe {
  text(messages: readonly Message[], options?: { opens?: boolean; tools?: boolean }): string | Error
  readonly strings: readonly string[]
  readonly problems: string[]
}

function findGenerationPrompt({ text, problems }: Probe): string {
  const closed = text([asked])
  const open = text([asked], { opens: true })
  if (typeof closed !== 'string' || typeof open !== 'string') {
    const error = typeof open === 'string' ? closed : open
    problems.push(`a plain question cannot be rendered: ${(error as Error).message}`)
    return ''
  }
  if (open.startsWith(closed) && open.length > closed.length) return open.slice(closed.length)
  if (open === closed) problems.push('the template has no generation prompt')
  else problems.push('the generation prompt changes the text before it')
  return ''
}

/**
 * The opening of a turn that some templates write at the end of every text, asked for or not;
 * '' where there is none.
 */
function alwaysOpened({ text, strings }: Probe): string {
  const plain = text([asked])
  if (plain !== text([asked], { opens: true })) return ''
  const answered = text(probePrefix([]))
  if (typeof plain !== 'string' || typeof answered !== 'string') return ''
  const shared = commonSuffix(plain, answered)
  const closer = strings.find(string => shared.startsWith(string))
  return closer === undefined ? '' : shared.slice(closer.length)
}

/** Renders without that opening where none was asked for. */
function cutting(text: Probe['text'], always: string): Probe['text'] {
  return (messages, options = {}) => {
    const rendered = text(messages, options)
    if (options.opens || typeof rendered !== 'string' || !rendered.endsWith(always)) return rendered
    return rendered.slice(0, -always.length)
  }
}

function commonSuffix(a: string, b: string): string {
  let length = 0
  while (length < a.length && a.at(-1 - length) === b.at(-1 - length)) length++
  return length === 0 ? '' : a.slice(-length)
}

interface Ending {
  readonly isSupported: boolean
  /** What stands between the last word of the turn and its closer. */
  readonly tail: string
  /** Several where a turn closes otherwise once something follows it. */
  readonly closers: readonly string[]
  readonly separator: string
  /** The control string that follows a turn without a closer. */
  readonly next: string
}

const noEnding: Ending = { isSupported: false, tail: '', closers: [], separator: '', next: '' }

/** How a turn ends: compared when it is the last message and when something follows it. */
function probeEnding(probe: Probe, results: readonly ToolMessage[]): Ending {
  const hasCalls = results.length > 0
  const turn = probePrefix(results)
  const last = probe.text(turn, { tools: hasCalls })
  const followed = probe.text([...turn, ...(hasCalls ? results : [again])], {
    opens: true,
    tools: hasCalls,
  })
  if (typeof last !== 'string' || typeof followed !== 'string') return noEnding
  const alone = afterProbe(last, hasCalls)
  const inside = afterProbe(followed, hasCalls)
  if (alone === undefined || inside === undefined) return noEnding
  const closing = splitAtCloser(alone, inside, probe.strings)
  if (closing) return { isSupported: true, next: '', ...closing }
  const tail = commonPrefix(alone, inside)
  const starts = (text: string): string =>
    probe.strings.find(string => text.slice(tail.length).startsWith(string)) ?? ''
  const final = starts(alone)
  const next = starts(inside)
  if (final === '' || next === '') return { ...noEnding, isSupported: true, tail, next }
  return { isSupported: true, tail, closers: [final, next], separator: '', next: '' }
}

function afterProbe(text: string, hasCalls: boolean): string | undefined {
  const end = endOfProbe(text, hasCalls)
  return end < 0 ? undefined : text.slice(end)
}

/**
 * The closer is the last control string that ends a turn both as the last message and before
 * another one; what comes before it belongs to the turn's own text.
 */
function splitAtCloser(alone: string, inside: string, strings: readonly string[]) {
  const shared = commonPrefix(alone, inside)
  const found = lastControl(shared, strings)
  if (!found || !isClosing(found.string)) return undefined
  return {
    tail: shared.slice(0, found.at),
    closers: [found.string],
    separator: shared.slice(found.at + found.string.length),
  }
}

/** Marks that close a call or a block inside a turn, and so never the turn itself. */
function isClosing(string: string): boolean {
  return !/^<\/|tool[▁_ ]?calls?|function|arg|think|^\[\/?(?:TOOL_CALLS|CALL_ID|ARGS)\]$/i.test(
    string,
  )
}

function lastControl(
  text: string,
  strings: readonly string[],
): { at: number; string: string } | undefined {
  return strings
    .map(string => ({ at: text.lastIndexOf(string), string }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => b.at - a.at || b.string.length - a.string.length)[0]
}

function commonPrefix(a: string, b: string): string {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return a.slice(0, length)
}

function groupingOf({ text }: Probe, isSupported: boolean): Profile['toolResults'] {
  if (!isSupported) return 'unsupported'
  const results = [result(1), result(2)]
  const both = text([...probePrefix(results), ...results], { tools: true })
  const one = text([...probePrefix(results.slice(0, 1)), result(1)], { tools: true })
  if (typeof both !== 'string' || typeof one !== 'string') return 'unsupported'
  const ending = one.slice(one.indexOf(`${word}result1`) + `${word}result1`.length)
  return both.slice(both.indexOf(`${word}result1`)).startsWith(`${word}result1${ending}`)
    ? 'separate'
    : 'grouped'
}

function needsTools({ text }: Probe): boolean {
  const tail = (tools: boolean, observed: readonly Message[]): string | undefined => {
    const rendered = text([...probePrefix(observed), ...observed], { opens: true, tools })
    if (typeof rendered !== 'string') return undefined
    return afterProbe(rendered, observed[0]?.role === 'tool')
  }
  return (
    tail(true, [again]) !== tail(false, [again]) ||
    tail(true, [result(1)]) !== tail(false, [result(1)])
  )
}

/** Which earlier text a new message changes, found by comparing renderings before and after it. */
function findRewrites({ text }: Probe): readonly string[] {
  const thought = probePrefix([])
  const found: string[] = []
  const before = text(thought)
  const after = text([...thought, again])
  if (typeof before === 'string' && typeof after === 'string') {
    const hadThought = before.includes(`${word}thought`)
    if (hadThought && !after.includes(`${word}thought`)) {
      found.push('a new user message removes the thinking of earlier turns')
    } else if (!after.startsWith(before.trimEnd())) {
      found.push('a new user message changes the text of earlier turns')
    }
    if (!hadThought) found.push('thinking is never shown again, not even of the last turn')
  }
  const called = probePrefix([result(1)])
  const calling = text(called, { tools: true })
  const answered = text([...called, result(1)], { tools: true })
  if (typeof calling === 'string' && typeof answered === 'string') {
    if (calling.includes(`${word}thought`) && !answered.includes(`${word}thought`)) {
      found.push('a tool result removes the thinking of the turn that called the tool')
    }
  }
  return found
}
