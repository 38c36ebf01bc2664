import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { modelFileNames } from '@espalier/text/chat'
import { getFollowed, type Hub, hubAddress, readBody, refusal } from './request.ts'

/** Where a model's files are fetched from, and where they go. */
export interface FetchOptions extends Hub {
  readonly folder: string
}

/** Fetches the tokenizer and template files of a model into a folder, and never its weights. */
export async function fetchModel(model: string, options: FetchOptions): Promise<void> {
  const hub = hubAddress(options)
  const files: [name: string, bytes: Buffer][] = []
  for (const name of modelFileNames) {
    const bytes = await fetchFile(`${hub}/${model}/resolve/main/${name}`, options)
    if (bytes) files.push([name, bytes])
    else if (name === 'tokenizer.json') {
      throw new Error(
        `${hub} has no tokenizer.json for ${model}: is that its name there? ` +
          'Models that are only offered as a service have none',
      )
    }
  }
  await mkdir(options.folder, { recursive: true })
  // The tokenizer is written last: its presence means that the folder is complete.
  for (const [name, bytes] of files.reverse()) {
    const part = join(options.folder, `${name}.${process.pid}.part`)
    await writeFile(part, bytes)
    await rename(part, join(options.folder, name))
  }
}

const largestFile = 64 * 1024 * 1024
async function fetchFile(address: string, hub: Hub): Promise<Buffer | undefined> {
  const answer = await getFollowed(address, hub, { signal: AbortSignal.timeout(120_000) })
  if (answer.status === 200) return await readBody(answer, largestFile)
  await answer.body.dump()
  if (answer.status === 404) return undefined
  throw refusal(answer)
}
