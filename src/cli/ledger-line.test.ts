import { expect, it } from 'vitest'
import { ledgerLine } from './ledger-line.ts'

it('the ledger is told as a sum; what is nothing is left out', () => {
  const dropped = { stale: 20, odd: 1000 }
  const ledger = { sampled: 5026, learned: 4000, dropped, inFlight: 0, heldOut: 6 }
  expect(ledgerLine(ledger)).toBe(
    '5,026 sampled = 4,000 learned + 20 dropped: stale + 1,000 dropped: odd + 6 held out',
  )
})
