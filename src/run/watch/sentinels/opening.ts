import { type Message, textOf } from '@espalier/text'
import { lengthTo, type Tree } from '../../../base/core/tree.ts'
import type { Alarm, Sentinel, SentinelContext } from './sentinel.ts'

/** Warns if the task's text is missing from the prompt that the policy saw. */
export function missingOpening({ renderer }: SentinelContext): Sentinel {
  let looked = 0
  return {
    name: 'missing-opening',
    seeTree(tree): Alarm | undefined {
      if (looked >= 16) return undefined
      const words = openingWords(tree)
      const prompt = tree.nodes[1]?.segment
      if (words === undefined || prompt?.origin !== 'prompt') return undefined
      looked++
      if (plain(renderer.decode(prompt.ids)).includes(words)) return undefined
      looked = Number.POSITIVE_INFINITY
      return {
        message: `the prompt of task ${tree.task} does not hold the text of its opening: ${JSON.stringify(words)}`,
        likely:
          'the chat template drops it, or this is not the model that the prompt was rendered for: look with espalier doctor, and at the prompt with espalier show --tokens',
      }
    },
  }
}

/** Warns if an attempt was over before its first sample because its opening fills the context. */
export function openingTooLong(): Sentinel {
  let isOver = false
  return {
    name: 'opening-too-long',
    seeTree(tree): Alarm | undefined {
      const cut = tree.trajectories.find(
        ({ outcome, turns }) =>
          turns.length === 0 && outcome.kind === 'truncated' && outcome.limit === 'context',
      )
      if (isOver || !cut) return undefined
      isOver = true
      return {
        message:
          `the opening of task ${tree.task} has ${lengthTo(tree, cut.end)} tokens and leaves no room for an answer: ` +
          'nothing was sampled, and what is scored is an attempt without a turn',
        likely:
          '--max-context is smaller than the openings: raise it as far as the model reads, or shorten them with --condense',
      }
    },
  }
}

/** The first words of the user's last message; undefined if it was condensed. */
function openingWords(tree: Tree): string | undefined {
  const { messages = [], turns = [], events = [] } = tree.trajectories[0] ?? {}
  if (events.some(({ kind }) => kind.startsWith('rewrite') || kind.startsWith('condense'))) {
    return undefined
  }
  const opening: readonly Message[] = messages.slice(0, turns[0]?.messages ?? messages.length)
  const last = opening.findLast(message => message.role === 'user')
  const words = last && plain(textOf(last.content)).slice(0, 40)
  return words === '' ? undefined : words
}

function plain(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
