import { expect } from 'vitest'
import type { Policy, SampleRequest } from '../src/base/core/policy.ts'
import { rowsOf } from '../src/base/core/row.ts'
import type { Tree } from '../src/base/core/tree.ts'

/** What a policy itself saw and said, request by request. */
export interface Exchange {
  readonly prompt: Int32Array
  readonly sampled: Int32Array
}

/** The same policy, with an independent record of its exchanges. */
export function withOwnRecord(policy: Policy): Policy & { readonly record: Exchange[] } {
  const record: Exchange[] = []
  return {
    ...policy,
    record,
    async sample(request: SampleRequest, call) {
      const prompt = request.prompt.ids.slice()
      const sample = await policy.sample(request, call)
      if (sample.kind === 'tokens') record.push({ prompt, sampled: sample.segment.ids.slice() })
      return sample
    },
  }
}

/** Whether every exchange stands in a row token for token, and each sampled token is trained once. */
export function expectCaptured(tree: Tree, record: readonly Exchange[]): void {
  const credits = tree.trajectories.map(({ id }) => ({ trajectory: id, advantage: 1, weight: 1 }))
  const rows = rowsOf(tree, { credits })
  for (const { prompt, sampled } of record) {
    const end = prompt.length + sampled.length
    const found = rows.filter(
      row =>
        isEqual(row.ids.subarray(0, prompt.length), prompt) &&
        isEqual(row.ids.subarray(prompt.length, end), sampled),
    )
    expect(found.length, 'rows that hold the exchange').toBeGreaterThan(0)
    const trained = found.filter(row =>
      row.mask.subarray(prompt.length, end).every(bit => bit === 1),
    )
    expect(trained.length, 'rows that train the exchange').toBe(1)
  }
  const trained = rows.reduce(
    (sum, row) => sum + row.mask.reduce((count, bit) => count + bit, 0),
    0,
  )
  expect(trained).toBe(record.reduce((sum, { sampled }) => sum + sampled.length, 0))
}

function isEqual(a: Int32Array, b: Int32Array): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index])
}
