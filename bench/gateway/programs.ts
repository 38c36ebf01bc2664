import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'

/** A program with a process of its own that listens. */
export interface Program extends AsyncDisposable {
  readonly url: string
  readonly process: number
}

/** Opens one of `bench/servers`. */
export async function openProgram(file: string, words: readonly string[]): Promise<Program> {
  const program = fileURLToPath(new URL(`../servers/${file}`, import.meta.url))
  const child: ChildProcess = fork(program, words, { execArgv: [] })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}`,
    process: child.pid!,
    [Symbol.asyncDispose]: async () => void child.kill(),
  }
}

/** Opens a gateway as users do, with a run folder, over a server with SGLang's protocol. */
export async function openEspalier(upstream: string, model: string): Promise<Program> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-'))
  const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  const most = '100000000'
  const words = ['gateway', '--policy', `sglang:${upstream}`, '--model', model, '--json']
  const limits = ['--max-turns', most, '--max-rollout-tokens', most, '--max-context', most]
  const own = ['--port', '0', '--attempts', '100000', '--concurrency', '256', '--grace', '0']
  const out = ['--out', join(folder, 'run'), '--group', '1']
  const child = spawn(process.execPath, [program, ...words, ...limits, ...own, ...out], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    url: (JSON.parse(line) as { url: string }).url,
    process: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** LiteLLM's program: what ESPALIER_LITELLM names, else the one that the shell would find. */
export function findLiteLlm(): string | undefined {
  const named = process.env.ESPALIER_LITELLM
  if (named) return named
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map(folder => join(folder, 'litellm')).find(existsSync)
}

/** Opens LiteLLM's proxy over a server with OpenAI's protocol. */
export async function openLiteLlm(program: string, upstream: string): Promise<Program> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-'))
  const config = join(folder, 'config.yaml')
  const port = 20_000 + (process.pid % 20_000)
  await writeFile(
    config,
    `model_list:\n  - model_name: bench\n    litellm_params:\n      model: openai/bench\n      api_base: ${upstream}/v1\n      api_key: none\n`,
  )
  const words = ['--config', config, '--port', String(port), '--host', '127.0.0.1']
  const child = spawn(program, [...words, '--num_workers', '1'], {
    stdio: 'ignore',
    env: { ...process.env, LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true' },
  })
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; !(await isUp(url)); tries++) {
    if (tries > 3000 || child.exitCode !== null)
      throw new Error(`${program} does not answer at ${url}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return {
    url,
    process: child.pid!,
    async [Symbol.asyncDispose]() {
      child.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function isUp(url: string): Promise<boolean> {
  return request(`${url}/health/liveliness`).then(
    ({ statusCode, body }) => body.dump().then(() => statusCode === 200),
    () => false,
  )
}

/** CPU milliseconds of a process and its threads; undefined if the system does not report them. */
export function cpuOf({ process: id }: Pick<Program, 'process'>): number | undefined {
  const file = `/proc/${id}/stat`
  if (!existsSync(file)) return undefined
  const fields = readFileSync(file, 'utf8').split(') ').at(-1)!.split(' ')
  const ticks = Number(fields[11]) + Number(fields[12])
  return ticks * 10
}
