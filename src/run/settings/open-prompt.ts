import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { nearFile } from '../../base/core/names/near-file.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isAgent } from '../../engine/capture/agent.ts'
import { type Prompt, withPrompt } from '../../engine/environments/prompted.ts'

const shape = z.strictObject({
  system: z.string().optional(),
  tools: z.record(z.string(), z.string()).optional(),
})

/** Reads the prompt that a file holds: `{"system", "tools": {NAME: DESCRIPTION}}`. */
export async function readPrompt(file: string): Promise<Prompt> {
  try {
    return shape.parse(JSON.parse(await readFile(file, 'utf8'))) as Prompt
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    const problem = isMissing ? `there is no such file.${nearFile(file)}` : problemOf(cause)
    throw new SettingError(`--prompt ${file}: ${problem}`, { cause })
  }
}

function problemOf(cause: unknown): string {
  const said = cause instanceof z.ZodError ? z.prettifyError(cause) : describeCause(cause)
  return `a prompt is a JSON object with "system" (a text) and "tools" (texts by name): ${said}`
}

/** The environment with another prompt, given or in a file. An agent decides itself what its model is told. */
export async function openPrompted<Data>(
  environment: Environment<Data>,
  prompt: Prompt | string | undefined,
): Promise<Environment<Data>> {
  if (prompt === undefined) return environment
  if (isAgent(environment as Environment)) {
    throw new SettingError(
      `--prompt is for environments: agent "${environment.name}" decides itself what its model is told`,
    )
  }
  const read = typeof prompt === 'string' ? await readPrompt(prompt) : prompt
  return withPrompt(environment, read)
}
