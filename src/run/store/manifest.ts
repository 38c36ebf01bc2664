import type { Json } from '../../base/core/ids.ts'
import { packageVersion } from '../../base/core/process/package-version.ts'
import { type RunManifest, runFormat } from './run-folder.ts'

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
