import type { Piece } from '../src/run/run/elsewhere.ts'
import type { Served } from '../src/run/run/served/served-run.ts'
import { makeMadePost } from '../src/run/run/threads/made-batch.ts'
import { readMadeBatch } from '../src/run/run/threads/read-batch.ts'

/** An attempt as a thread or a worker sends it. */
export function pieceOf(made: Extract<Served, { readonly kind: 'made' }>): Promise<Piece> {
  return new Promise(resolve => {
    const post = makeMadePost(batch => resolve(readMadeBatch(batch)[0]!.piece))
    post.addAttempt(0, made, 'alone')
  })
}
