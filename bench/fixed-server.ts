import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A server in its own process that always gives the same answer. */
export interface FixedServer extends AsyncDisposable {
  readonly url: string
  /** Microseconds of processor that it has used so far. */
  cpu(): Promise<number>
}

/** Opens it; `wait` is the least and the most milliseconds before it answers. */
export async function openFixedServer(
  answer: object,
  wait: readonly [number, number] = [0, 0],
): Promise<FixedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-'))
  const file = join(folder, 'answer.json')
  await writeFile(file, JSON.stringify(answer))
  const program = fileURLToPath(new URL('./servers/fixed.mjs', import.meta.url))
  const child: ChildProcess = fork(program, [file, ...wait.map(String)], { execArgv: [] })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}`,
    async cpu() {
      child.send('cpu')
      const [{ cpu }] = (await once(child, 'message')) as [{ cpu: NodeJS.CpuUsage }]
      return cpu.user + cpu.system
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** An answer of SGLang's `/generate` with these tokens, and their text for clients that read it. */
export function sglangAnswer(ids: readonly number[], text = '') {
  return {
    text,
    output_ids: ids,
    meta_info: {
      id: 'bench',
      finish_reason: { type: 'stop', matched: ids.at(-1) },
      completion_tokens: ids.length,
      cached_tokens: 0,
      weight_version: '1',
      output_token_logprobs: ids.map((id, index) => [-0.1234567 - index / 1000, id, null]),
    },
  }
}
