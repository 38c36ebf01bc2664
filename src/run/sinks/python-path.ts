import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../base/core/process/package-folder.ts'

/** The line by which Python finds the modules of this package. */
export function pythonPathLine(): string {
  const folder = fileURLToPath(new URL('integrations/python', packageFolder))
  return `shell:   export PYTHONPATH=${JSON.stringify(folder)}`
}
