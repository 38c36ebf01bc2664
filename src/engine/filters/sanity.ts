import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import type { Filter } from '../../base/core/group.ts'
import { type DropFrom, perTrajectory } from './filter.ts'

/** Drops trajectories whose conversation no trainer should see: roles out of order, orphan results. */
export function messageSanity({ from = 'loss' }: { readonly from?: DropFrom } = {}): Filter {
  return perTrajectory('message-sanity', from, ({ messages }) => insaneMessages(messages))
}

/** What is wrong with a conversation of a dataset or a trajectory; undefined if nothing. */
function insaneMessages(messages: readonly Message[]): string | undefined {
  if (!messages.some(message => message.role === 'assistant')) return 'nobody answers'
  const first = messages.find(({ role }) => role !== 'system' && role !== 'developer')
  if (first?.role !== 'user') return `the conversation begins with ${first?.role ?? 'nobody'}`
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') continue
    const before = messages[index - 1]?.role
    if (before !== 'assistant' && before !== 'tool') {
      return `the tool result at message ${index} follows ${before ?? 'nothing'}`
    }
  }
  return undefined
}

/** Drops trajectories with a turn that is not language: broken characters, one character repeated endlessly. */
export function tokenSoup({ from = 'loss' }: { readonly from?: DropFrom } = {}): Filter {
  return perTrajectory('token-soup', from, ({ messages }) => {
    for (const [index, message] of messages.entries()) {
      if (message.role !== 'assistant') continue
      const soup = soupIn(textOf(message.content))
      if (soup) return `message ${index} ${soup}`
    }
    return undefined
  })
}

/** Why a text is not language, in words; undefined if it is. */
function soupIn(text: string): string | undefined {
  const characters = [...text]
  if (characters.length < 40) return undefined
  const share = (pattern: RegExp): number =>
    characters.filter(character => pattern.test(character)).length / characters.length
  if (share(/\ufffd/u) > 0.02) return 'is full of broken characters'
  if (characters.filter(isControl).length / characters.length > 0.01) {
    return 'is full of control characters'
  }
  if (share(/\p{Co}/u) > 0.03) return 'is full of private characters'
  const run = longestRun(characters)
  return run >= 20 ? `repeats one character ${run} times` : undefined
}

function isControl(character: string): boolean {
  const code = character.charCodeAt(0)
  return code < 32 && character.trim() !== ''
}

/** Long runs of lines, dashes and digits are allowed; of letters and marks they are not. */
function longestRun(characters: readonly string[]): number {
  let longest = 0
  let length = 0
  characters.forEach((character, index) => {
    length = character === characters[index - 1] ? length + 1 : 1
    if (!/[\s\d=\-_*#.~|+]/u.test(character)) longest = Math.max(longest, length)
  })
  return longest
}
