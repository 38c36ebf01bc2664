import { type AssistantMessage, type Message, type ToolMessage, textOf } from '../../message.ts'
import {
  after,
  again,
  argumentMark,
  asked,
  type CallMark,
  callingTurn,
  callsOf,
  commonPrefix,
  commonSuffix,
  contentMark,
  countOf,
  type Probe,
  probeResult,
  spokenTurn,
} from './probe.ts'

/** How a turn ends once something follows it. */
export interface Ending {
  /** What stands between the turn's last word and the control string that ends it. */
  readonly tail: string
  /** The control string that ends the turn; '' if none does. */
  readonly stop: string
  /** The one that a sample ends with: not `stop` if the template rewrites it. */
  readonly sampledStop: string
  /** Whether `stop` already opens the message that follows, as in GLM's templates. */
  readonly isOpening: boolean
}

/** How a turn that calls ends, and the mark by which its last word is found. */
export interface CallEnding extends Ending {
  readonly mark: CallMark
  /** How one that makes several calls ends. */
  readonly several: Ending
}

/** What follows a turn's last word: where the turn is the last message, and where another follows. */
interface Followed {
  readonly alone: string
  readonly inside: string
}

/** How a turn that only speaks ends; undefined if the template refuses to show one. */
export function findSpokenEnding(probe: Probe): Ending | undefined {
  const followed = follow(probe, { turn: spokenTurn, observed: [again], mark: contentMark })
  if (!followed) return undefined
  const { alone, inside } = followed
  const found = lastControl(commonPrefix(alone, inside), probe.controls)
  if (found) return endingAt(inside, found)
  const ending = findDifference(followed, probe.controls)
  const start = inside.indexOf(again.content) - openingOf(probe, inside).length
  return { ...ending, isOpening: ending.isOpening && ending.tail.length >= start }
}

/** How turns that call end; undefined if the template shows neither their calls nor their words. */
export function findCallEnding(probe: Probe, spoken: Ending): CallEnding | undefined {
  for (const written of ['last', 'content'] as const) {
    const one = findMarkedEnding(probe, spoken, { results: [probeResult()], mark: written })
    if (!one) continue
    const mark = showsLast(probe, written) ? written : 'first'
    const results = [probeResult(1), probeResult()]
    return { ...one, mark, several: findMarkedEnding(probe, spoken, { results, mark }) ?? one }
  }
  return undefined
}

function findMarkedEnding(
  probe: Probe,
  spoken: Ending,
  { results, mark }: { readonly results: readonly ToolMessage[]; readonly mark: CallMark },
): Ending | undefined {
  const turn = callingTurn(callsOf(results), mark)
  const followed = follow(probe, { turn, observed: results, mark: markOf(mark), tools: true })
  if (!followed) return undefined
  const { alone, inside } = followed
  const known = spoken.isOpening || spoken.stop === '' ? -1 : inside.indexOf(spoken.stop)
  const observed = results.map(({ content }) => inside.indexOf(textOf(content)))
  if (known >= 0 && known < Math.min(...observed)) {
    return endingAt(inside, { at: known, string: spoken.stop })
  }
  const found = lastControl(commonPrefix(alone, inside), probe.controls)
  if (found && !isPerCall(probe, found.string)) return endingAt(inside, found)
  return findDifference(followed, probe.controls)
}

/** The word by which the end of a calling turn is found. */
export function markOf(mark: CallMark): string {
  return mark === 'content' ? contentMark : argumentMark
}

/** Whether the last of several calls is written; some templates write only the first. */
function showsLast(probe: Probe, mark: CallMark): boolean {
  const turn = callingTurn(callsOf([probeResult(1), probeResult()]), mark)
  const text = probe.text([asked, turn], { tools: true })
  return typeof text !== 'string' || text.includes(markOf(mark))
}

/** Whether a control string closes each call rather than the turn. */
function isPerCall(probe: Probe, string: string): boolean {
  const one = after(probe.text([asked, callingTurn([{}])], { tools: true }), asked.content) ?? ''
  const calls = callsOf([probeResult(1), probeResult()])
  const two = after(probe.text([asked, callingTurn(calls)], { tools: true }), asked.content) ?? one
  return countOf(two, string) > countOf(one, string)
}

function follow(
  probe: Probe,
  given: {
    readonly turn: AssistantMessage
    readonly observed: readonly Message[]
    readonly mark: string
    readonly tools?: boolean
  },
): Followed | undefined {
  const { turn, observed, mark, tools = false } = given
  const alone = after(probe.text([asked, turn], { tools }), mark)
  const inside = after(probe.text([asked, turn, ...observed], { tools, opens: true }), mark)
  return alone === undefined || inside === undefined ? undefined : { alone, inside }
}

/** A control string and where it stands. */
interface Found {
  readonly at: number
  readonly string: string
}

function endingAt(inside: string, { at, string }: Found): Ending {
  return { tail: inside.slice(0, at), stop: string, sampledStop: string, isOpening: false }
}

/** The ending of a turn that is closed in one way as the last message and in another before one. */
function findDifference({ alone, inside }: Followed, controls: readonly string[]): Ending {
  const shared = commonPrefix(alone, inside).length
  const from = Math.min(snap(alone, shared, controls), snap(inside, shared, controls))
  const last = nextControl(alone, from, controls)
  const followed = nextControl(inside, from, controls)
  if (followed) {
    return {
      ...endingAt(inside, followed),
      ...(last && { sampledStop: last.string }),
      isOpening: !last,
    }
  }
  const tail = inside.slice(0, from).trimEnd()
  return { tail, stop: '', sampledStop: last?.string ?? '', isOpening: false }
}

/** What a user's message begins with, wherever it stands. */
function openingOf(probe: Probe, inside: string): string {
  const first = probe.text([asked])
  if (typeof first !== 'string') return inside
  const before = (text: string, mark: string): string => text.slice(0, text.indexOf(mark))
  return commonSuffix(before(first, asked.content), before(inside, again.content))
}

/** A place in a text, moved back to the beginning of the control string it lies within. */
export function snap(text: string, at: number, controls: readonly string[]): number {
  let place = at
  for (const control of controls) {
    // Only what begins within its own length before the place can reach beyond it.
    const from = Math.max(0, at - control.length + 1)
    const start = text.slice(from, at - 1 + control.length).lastIndexOf(control)
    if (start >= 0 && from + start < at) place = Math.min(place, from + start)
  }
  return place
}

/** The control string at a place, white space before it left out; undefined if text stands. */
function nextControl(text: string, from: number, controls: readonly string[]): Found | undefined {
  const at = text.length - text.slice(from).trimStart().length
  const string = controls.find(control => text.startsWith(control, at))
  return string === undefined ? undefined : { at, string }
}

function lastControl(text: string, controls: readonly string[]): Found | undefined {
  return controls
    .map(string => ({ at: text.lastIndexOf(string), string }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => b.at - a.at || b.string.length - a.string.length)[0]
}
