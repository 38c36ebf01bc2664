import type { Guard } from '../../../base/core/guard.ts'

/** Ends of thinking blocks in the formats that people serve. */
const closers = [
  '</think>',
  '</thinking>',
  '[/THINK]',
  '<|END_THINKING|>',
  '<channel|>',
  '</seed:think>',
]

/** Stops a sample that thinks on and on: this many tokens without the end of a thought. @default 4096 */
export function thinkingGuard({ tokens = 4096 }: { readonly tokens?: number } = {}): Guard {
  return {
    name: 'thinking',
    watch(sample) {
      // Checked at this length only: a thought that ended before it is fine.
      if (sample.ids.length !== tokens) return false
      const text = sample.text()
      return !closers.some(closer => text.includes(closer))
    },
  }
}
