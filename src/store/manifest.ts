import { readFileSync } from 'node:fs'
import type { Json } from '../core/ids.ts'
import { type RunManifest, runFormat } from './run-folder.ts'

/** The version of this package. */
export function packageVersion(): string {
  const url = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
}

/** The manifest of a run that begins now. For an embedded policy it names the kernel. */
export function newManifest(
  kind: string,
  config: Readonly<Record<string, unknown>>,
  kernel?: string,
): RunManifest {
  return {
    format: runFormat,
    kind,
    config: JSON.parse(JSON.stringify(config)) as Record<string, Json>,
    versions: {
      espalier: packageVersion(),
      node: process.version,
      platform: `${process.platform}-${process.arch}`,
      // Equal bits are promised per kernel.
      ...(kernel !== undefined && { kernel }),
    },
    status: 'running',
    directory: process.cwd(),
    started: new Date().toISOString(),
  }
}
