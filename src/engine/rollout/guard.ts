import type { CallAttempt, Reply } from '@espalier/text'
import type { Watch } from '../../base/core/policy.ts'
import type { RolloutContext } from './attempt.ts'
import type { Walk } from './walk.ts'

/** The watcher of one sample, if guards are on. */
export function makeWatch({ guards, renderer }: RolloutContext): Watch | undefined {
  if (!guards) return undefined
  const watching = guards.filter(guard => guard.watch)
  if (watching.length === 0) return undefined
  return ({ ids }) => {
    let decoded: string | undefined
    const text = (): string => {
      decoded ??= renderer.decode(ids)
      return decoded
    }
    return watching.find(guard => guard.watch!({ ids, text }))?.name
  }
}

/** The part of an attempt that guards review. */
interface Reviewed extends Pick<Walk, 'messages'> {
  readonly context: Pick<RolloutContext, 'guards'>
}

/** The guard that ends an attempt after a turn, if one does. */
export function reviewTurn(walk: Reviewed, reply: Reply): string | undefined {
  const { guards } = walk.context
  if (!guards) return undefined
  const reviewing = guards.filter(guard => guard.review)
  if (reviewing.length === 0) return undefined
  const calls = [...pastCalls(walk), ...reply.calls]
  return reviewing.find(guard => guard.review!(calls))?.name
}

/** Calls that were made before, as they were written. */
function pastCalls(walk: Reviewed): readonly CallAttempt[] {
  return walk.messages.flatMap(message => {
    if (message.role !== 'assistant' || message === walk.messages.at(-1)) return []
    return (message.tool_calls ?? []).map(
      ({ id, function: { name, arguments: text } }): CallAttempt => ({
        kind: 'parsed',
        id,
        name,
        arguments: text,
      }),
    )
  })
}
