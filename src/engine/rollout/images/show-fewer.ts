import { showInstead } from '../act.ts'
import type { Walk } from '../walk.ts'
import { withoutOldest } from './leave-out.ts'

/** Leaves the oldest images out of what the policy is shown, if there are more than are shown at one time. */
export function showFewer(walk: Walk): void {
  const { images } = walk.context
  // In a turn that another path began, the context before it must not change.
  if (!images || walk.next.begun !== undefined) return
  const { max } = images
  const shown = withoutOldest(walk.shown, max)
  const surplus = walk.images.length - max
  const words = surplus === 1 ? '1 image' : `${surplus} images`
  const reason = `${words} left out: at most ${max} are shown`
  showInstead(walk, shown, { by: 'images', reason })
}
