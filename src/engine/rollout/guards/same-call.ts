import type { Guard } from '../../../base/core/guard.ts'

/** Ends an attempt that makes the same call with the same arguments this often in a row. @default 4 */
export function sameCallGuard({ times = 4 }: { readonly times?: number } = {}): Guard {
  return {
    name: 'same-call',
    review(calls) {
      const last = calls.slice(-times).map(call => {
        return call.kind === 'parsed' ? `${call.name} ${call.arguments}` : call.raw
      })
      return last.length === times && last.every(call => call === last[0])
    },
  }
}
