import type { Message } from '@espalier/text'
import type { Trajectory, View } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { conversationLines } from '../conversation.ts'
import type { Terminal } from '../terminal.ts'

/**
 * What the policy was shown, turn by turn: what was new before each turn, and the whole context again
 * where a rewrite replaced it.
 */
export function seenLines(
  tree: Tree,
  trajectory: Trajectory,
  terminal: Pick<Terminal, 'paint'>,
): readonly string[] {
  const { turns, messages, views = [] } = trajectory
  let shownUntil = 0
  return turns.flatMap((turn, index) => {
    const view = views.findLast(each => each.turn <= index)
    const isNew = view !== undefined && view.turn === index
    const shown = seenBefore(messages, turn.messages, view)
    const fresh = isNew ? shown : messages.slice(shownUntil, turn.messages)
    shownUntil = turn.messages + 1
    const tokens = tree.nodes[turn.from]!.start
    const head = `turn ${index + 1}: it saw ${count(shown.length, 'message')}, ${count(tokens, 'token')}`
    return [
      terminal.paint('bold', `${head}${isNew ? `, ${changeOf(view)}:` : ''}`),
      ...conversationLines(fresh, terminal),
      terminal.paint('dim', 'and said'),
      ...conversationLines(messages.slice(turn.messages, shownUntil), terminal),
    ]
  })
}

function changeOf({ by, examples }: View): string {
  return examples
    ? `${count(examples.end - examples.start, 'message')} of examples among them`
    : `rewritten by ${by}`
}

/** A line for examples that are left out of a conversation. */
export function foldedLines(
  { views = [] }: Trajectory,
  { paint }: Pick<Terminal, 'paint'>,
): readonly string[] {
  return views.flatMap(({ examples }) =>
    examples
      ? [
          paint(
            'dim',
            `${count(examples.end - examples.start, 'message')} of examples were shown before the task: --as-seen`,
          ),
        ]
      : [],
  )
}

/** The messages before a turn, as the policy was shown them. */
function seenBefore(
  messages: readonly Message[],
  end: number,
  view: View | undefined,
): readonly Message[] {
  return view ? [...view.shown, ...messages.slice(view.from, end)] : messages.slice(0, end)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
