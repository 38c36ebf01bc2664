import type { PartingAnswer, PartingSide, TokenPage } from '../trajectory-shapes.ts'

const around = 48

/** Where two whole paths part, with the probabilities there. */
export function partingOf(
  a: { readonly id: string; readonly page: TokenPage },
  b: { readonly id: string; readonly page: TokenPage },
): PartingAnswer {
  const [left, right] = [a.page.ids, b.page.ids]
  const most = Math.min(left.length, right.length)
  let shared = 0
  while (shared < most && left[shared] === right[shared]) shared++
  return {
    shared,
    areEqual: shared === left.length && shared === right.length,
    before: joined(a.page, Math.max(0, shared - around), shared),
    sides: [sideOf(a.id, a.page, shared), sideOf(b.id, b.page, shared)],
  }
}

const origins = ['prompt', 'observed', 'sampled'] as const

function sideOf(id: string, page: TokenPage, at: number): PartingSide {
  const after = joined(page, at + 1, at + 1 + around)
  if (at >= page.ids.length)
    return { id, after, token: null, origin: 'end', entropy: null, top: [] }
  return {
    id,
    after,
    token: { id: page.ids[at]!, text: textAt(page, at), logprob: page.logprobs[at] ?? null },
    origin: origins[page.origins[at]!]!,
    entropy: page.entropies[at] ?? null,
    top: page.top[at] ?? [],
  }
}

function joined(page: TokenPage, from: number, to: number): string {
  const places = Array.from(
    { length: Math.max(0, Math.min(to, page.ids.length) - from) },
    (_, index) => from + index,
  )
  return places.map(at => textAt(page, at)).join('')
}

function textAt({ texts, ids }: TokenPage, at: number): string {
  return texts[at] ?? ` ${ids[at]} `
}
