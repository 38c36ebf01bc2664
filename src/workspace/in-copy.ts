import type { Call } from '../core/call.ts'
import type { Workspace } from './contract.ts'

/**
 * Does work that leaves traces, such as running tests, in a copy of a workspace: whoever goes on in
 * it finds nothing of them. One that cannot be copied, such as for a file that nobody may read, is
 * worked in itself: a policy must not be able to keep its work from being judged.
 */
export async function inCopy<Result>(
  workspace: Workspace,
  call: Call,
  work: (workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const copy = await workspace.fork(call).catch(() => undefined)
  if (!copy) return await work(workspace)
  try {
    return await work(copy)
  } finally {
    await copy[Symbol.asyncDispose]()
  }
}
