import { expect, it } from 'vitest'
import type { Workspace } from './contract.ts'
import { inCopy } from './in-copy.ts'

const { signal } = new AbortController()

function workspaceWith(fork: Workspace['fork']): Workspace & { isGone?: true } {
  return {
    run: () => Promise.reject(new Error('nothing runs here')),
    put: async () => {},
    fork,
    async [Symbol.asyncDispose]() {
      Object.assign(this, { isGone: true })
    },
  }
}

it('what leaves traces is done in a copy, which goes; one that cannot be copied is judged itself', async () => {
  const copy = workspaceWith(() => Promise.reject(new Error('a copy')))
  const work = async (workspace: Workspace) => workspace
  expect(
    await inCopy(
      workspaceWith(async () => copy),
      { signal },
      work,
    ),
  ).toBe(copy)
  expect(copy.isGone).toBe(true)
  const locked = workspaceWith(() => Promise.reject(new Error('a file that nobody may read')))
  expect(await inCopy(locked, { signal }, work)).toBe(locked)
  expect(locked.isGone).toBeUndefined()
})
