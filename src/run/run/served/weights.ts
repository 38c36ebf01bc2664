import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { Policy } from '../../../base/core/policy.ts'
import { isEmbedded } from '../../../learn/model/policy.ts'

/** The weights of an embedded policy; undefined for one on a server. */
export async function packWeights(policy: Policy): Promise<Buffer | undefined> {
  if (!isEmbedded(policy)) return undefined
  return await inFolder(async folder => {
    await policy.model.save(folder)
    const names = await readdir(folder)
    const files = names.map(async name => [name, await readFile(join(folder, name))] as const)
    return serialize(new Map(await Promise.all(files)))
  })
}

/** Takes weights over that were sent. */
export async function takeWeights(policy: Policy, bytes: Uint8Array): Promise<void> {
  if (!isEmbedded(policy)) return
  await inFolder(async folder => {
    const files = deserialize(bytes) as ReadonlyMap<string, Uint8Array>
    for (const [name, content] of files) {
      if (!/^[\w.-]+$/.test(name))
        throw new Error(`weights with a file called ${name} are no model's`)
      await writeFile(join(folder, name), content)
    }
    await policy.model.load(folder)
  })
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-weights-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
