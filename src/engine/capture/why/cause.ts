import type { Message } from '@espalier/text'
import { saidKeys } from '../message-key.ts'
import type { CapturedTurn, Fork, ForkReason, Prompted } from '../turn.ts'
import { summaryIn } from './summary.ts'

/** A conversation as it is compared. */
type Compared = Pick<Prompted, 'messages' | 'keys' | 'toolsKey'>

/** Which known conversation a new one is nearest to, and why it does not go on from it. */
export function findCause(known: readonly CapturedTurn[], asked: Compared): Fork | undefined {
  let nearest: CapturedTurn | undefined
  let shared = -1
  for (const turn of known) {
    const same = sharedKeys(turn.saidKeys.list, asked.keys.list)
    // Among equals take the newest: that is the one which was replaced.
    if (same < shared) continue
    nearest = turn
    shared = same
  }
  if (!nearest) return undefined
  const reason = compactionOf(nearest, asked, known) ?? causeOf(nearest, asked, shared)
  return { of: nearest, shared: reason.cause === 'conversation' ? 0 : shared, ...reason }
}

/** A conversation that goes on from a summary, which the one it is nearest to does not. */
function compactionOf(
  nearest: CapturedTurn,
  { messages }: Compared,
  known: readonly CapturedTurn[],
): ForkReason | undefined {
  const summary = summaryIn(messages, known)
  if (!summary || summaryIn(nearest.messages, [summary])) return undefined
  const reason = `it goes on from a summary of ${summary.messages.length} messages`
  return { cause: 'compaction', reason }
}

function sharedKeys(a: readonly string[], b: readonly string[]): number {
  const most = Math.min(a.length, b.length)
  let same = 0
  while (same < most && a[same] === b[same]) same++
  return same
}

/** Why a conversation differs from an earlier one whose first `shared` messages it repeats. */
function causeOf(before: CapturedTurn, asked: Compared, shared: number): ForkReason {
  const { messages } = asked
  const keys = asked.keys.list
  const said: readonly Message[] = [...before.messages, before.message]
  if (!messages.slice(0, shared).some(({ role }) => role !== 'system' && role !== 'developer')) {
    return { cause: 'conversation', reason: 'a conversation of its own' }
  }
  if (shared === keys.length) return wholeCause(before, asked)
  if (before.toolsKey !== asked.toolsKey && shared === before.saidKeys.list.length)
    return otherTools
  if (keys.length < said.length) {
    const reason = `${keys.length} messages stand where ${said.length} stood, from number ${shared + 1} on`
    return { cause: 'compaction', reason }
  }
  return editOf(said[shared], messages[shared]!, shared)
}

const otherTools: ForkReason = { cause: 'tools', reason: 'other tools are offered' }

/** Why a conversation forks though all its messages are known. */
function wholeCause(before: CapturedTurn, { messages, toolsKey }: Compared): ForkReason {
  if (before.toolsKey !== toolsKey) return otherTools
  if (messages.at(-1)?.role === 'assistant') {
    return { cause: 'continues', reason: 'it goes on behind an answer without a new message' }
  }
  return { cause: 'again', reason: 'the same was asked again' }
}

/** What was changed in the first message that differs. */
function editOf(was: Message | undefined, now: Message, at: number): ForkReason {
  const where = `message ${at + 1}`
  if (was?.role === 'tool') return { cause: 'result', reason: `the tool's answer in ${where}` }
  if (was?.role !== 'assistant') return { cause: 'prompt', reason: `what stands in ${where}` }
  if (now.role !== 'assistant') {
    return { cause: 'answer', reason: `an answer is missing before ${where}` }
  }
  const [then, later] = [saidKeys(was), saidKeys(now)]
  if (then.calls !== later.calls) return { cause: 'calls', reason: `the calls in ${where}` }
  if (then.content !== later.content) return { cause: 'answer', reason: `the words in ${where}` }
  const change = later.reasoning === '' ? 'was dropped from' : 'is another in'
  return { cause: 'reasoning', reason: `the reasoning ${change} ${where}` }
}
