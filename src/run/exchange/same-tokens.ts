import type { Message, Renderer } from '@espalier/text'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { openRunReader } from '../store/store.ts'

/** Refuses a run whose tokens say something else to a model than to the one that sampled them; `flag` names that model. */
export async function refuseOtherTokens(
  run: string,
  renderer: Renderer,
  flag: string,
): Promise<void> {
  await using reader = await openRunReader(run)
  const tokens = makeSameTokens(renderer)
  for await (const { group } of reader.groups()) {
    for (const { tree, trajectory } of group.members) tokens.look(tree, trajectory)
  }
  if (!tokens.isSame()) throw otherTokens(run, renderer, flag)
}

/** The error for a run of another tokenizer. */
export function otherTokens(run: string, { name }: Renderer, flag: string): SettingError {
  return new SettingError(
    `${flag}: the tokens of ${run} are of another tokenizer than that of ${name}, to which they say something else`,
  )
}

/** Looks whether the tokens of first turns are, to a renderer, the words that were kept with them. */
export function makeSameTokens(renderer: Renderer): {
  look(tree: Tree, trajectory: Trajectory): void
  isSame(): boolean
} {
  let isStrange = false
  const read = { alike: 0, otherwise: 0 }
  return {
    look(tree, { turns: [first], messages }) {
      if (!first) return
      const { ids } = tree.nodes[first.from]!.segment
      isStrange ||= ids.some(id => id >= renderer.vocabulary)
      if (isStrange) return
      const words = wordsOf(messages[first.messages])
      if (words === undefined) return
      if (renderer.decode(ids).includes(words)) read.alike++
      else read.otherwise++
    },
    // A parser may change single words; another tokenizer leaves none.
    isSame: () => !isStrange && read.alike >= read.otherwise,
  }
}

/** What a turn says, or which tool it calls first. */
function wordsOf(message: Message | undefined): string | undefined {
  if (message?.role !== 'assistant') return undefined
  const { content, tool_calls: calls } = message
  const words = typeof content === 'string' ? content.trim() : ''
  return words === '' ? calls?.[0]?.function.name : words
}
