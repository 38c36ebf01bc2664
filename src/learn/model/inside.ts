import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { InsideWeights } from '../../base/core/policy.ts'
import type { EmbeddedModel } from './model.ts'

/** What an embedded model answers of its weights; trainers find the model itself here. */
export class EmbeddedWeights implements InsideWeights {
  readonly model: EmbeddedModel
  readonly context: number
  readonly kernel: string
  readonly tolerance = 1e-4
  readonly ownThreads = true
  readonly reopen: InsideWeights['reopen']
  readonly copy: InsideWeights['copy']

  constructor(model: EmbeddedModel, { reopen, copy }: Pick<InsideWeights, 'reopen' | 'copy'>) {
    this.model = model
    this.context = model.shape.context
    this.kernel = model.kernel
    this.reopen = reopen
    this.copy = copy
  }

  async pack(): Promise<Uint8Array> {
    // Everybody has the weights of a pretrained model: only an adapter travels.
    if (this.model.base !== undefined && !this.model.adapter) return serialize(new Map())
    return await inFolder(async folder => {
      await this.model.save(folder)
      const names = await readdir(folder)
      const files = names.map(async name => [name, await readFile(join(folder, name))] as const)
      return serialize(new Map(await Promise.all(files)))
    })
  }

  async take(packed: Uint8Array): Promise<void> {
    const files = deserialize(packed) as ReadonlyMap<string, Uint8Array>
    if (files.size === 0) return
    await inFolder(async folder => {
      for (const [name, content] of files) {
        if (!/^[\w.-]+$/.test(name))
          throw new Error(`weights with a file called ${name} are no model's`)
        await writeFile(join(folder, name), content)
      }
      await this.model.load(folder)
    })
  }

  async load(checkpoint: string): Promise<void> {
    await this.model.load(checkpoint)
  }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-weights-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
