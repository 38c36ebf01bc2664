import { type FileHandle, open, realpath } from 'node:fs/promises'
import type { Call } from '../../base/core/call.ts'
import { appenderTo } from '../../base/core/files/appender.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import type { Policy, Sample, SampleRequest } from '../../base/core/policy.ts'
import { jsonWithoutSecrets, withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import {
  type CassetteHeader,
  describeLine,
  digestOf,
  errorLine,
  sampleLine,
  sampleName,
  scoreLine,
  scoreName,
} from './cassette.ts'
import { makeNth } from './nth.ts'

/**
 * Records all that a policy answers into a cassette, so that the whole run can be replayed without
 * it. An answer is in the file before anyone sees it. Recording into an existing cassette of the
 * same policy adds to it: what was recorded last counts.
 */
export async function withRecord(policy: Policy, file: string): Promise<Policy> {
  const cassette = await openCassette(policy, file)
  const countOf = makeNth()

  async function record(
    request: SampleRequest,
    call: Call,
    { count, work }: { readonly count: number; readonly work: () => Promise<readonly Sample[]> },
  ): Promise<readonly Sample[]> {
    const nth = countOf(request.key, count)
    const prompt = digestOf(request.prompt.ids)
    const samples = await work().catch(async (cause: unknown) => {
      const isOurs = call.signal.aborted && cause === call.signal.reason
      const error = cause instanceof Error ? cause : new Error(String(cause))
      if (!isOurs) await cassette.write([errorLine(sampleName(request.key, nth), prompt, error)])
      throw cause
    })
    const lines = samples.map((sample, index) =>
      sampleLine(sampleName(request.key, nth + index), prompt, sample),
    )
    await cassette.write(lines)
    return samples
  }

  return {
    ...policy,
    async sample(request, call) {
      const work = async () => [await policy.sample(request, call)]
      const [only] = await record(request, call, { count: 1, work })
      return only!
    },
    ...(policy.sampleSeveral && {
      sampleSeveral: (request, seeds, call) =>
        record(request, call, {
          count: seeds.length,
          work: () => policy.sampleSeveral!(request, seeds, call),
        }),
    }),
    ...(policy.score && {
      async score(ids, from, options, call) {
        const scores = await policy.score!(ids, from, options, call)
        await cassette.write([scoreLine(scoreName(ids, from, options.temperature), scores)])
        return scores
      },
    }),
    ...(policy.describe && {
      async describe(call) {
        const description = await policy.describe!(call)
        await cassette.write([describeLine(description)])
        return description
      },
    }),
    async [Symbol.asyncDispose]() {
      await cassette.close()
      await policy[Symbol.asyncDispose]()
    },
  }
}

interface Cassette {
  write(lines: readonly string[]): Promise<void>
  close(): Promise<void>
}

async function openCassette(policy: Policy, file: string): Promise<Cassette> {
  const header: CassetteHeader = {
    espalier: 'cassette',
    format: 1,
    policy: policy.name,
    capabilities: policy.capabilities,
  }
  const text = jsonWithoutSecrets(header)
  const first = await mended(file, text)
  const lines = appenderTo(await realpath(file))
  if (first === '') await lines.append(`${text}\n`)
  else if (first !== text) {
    throw new Error(
      `${file} exists and is no cassette of ${policy.name}. Record into another file.`,
    )
  }
  return {
    async write(added) {
      await lines.append(`${withoutSecretsInJson(added.join('\n'))}\n`)
    },
    close: lines.settled,
  }
}

/** The first line of a cassette, whose last line is cut off if it is only half there. */
async function mended(file: string, header: string): Promise<string> {
  const handle = await open(file, 'a+').catch((cause: unknown) => {
    throw new StoreError(file, { cause })
  })
  try {
    await mend(handle, header)
    return await firstLine(handle)
  } finally {
    await handle.close()
  }
}

/** Removes a half-written last line, so that the next line does not continue it. */
async function mend(handle: FileHandle, header: string): Promise<void> {
  const { size } = await handle.stat()
  const piece = Buffer.alloc(65_536)
  for (let end = size; end > 0; ) {
    const from = Math.max(0, end - piece.length)
    const { bytesRead } = await handle.read(piece, 0, end - from, from)
    const at = piece.subarray(0, bytesRead).lastIndexOf(0x0a)
    const isOurs =
      at >= 0 || (from === 0 && header.startsWith(piece.toString('utf8', 0, bytesRead)))
    if (isOurs) return await handle.truncate(from + at + 1)
    end = from
  }
}

async function firstLine(handle: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(65_536), 0, 65_536, 0)
  return buffer.toString('utf8', 0, bytesRead).split('\n')[0]!
}
