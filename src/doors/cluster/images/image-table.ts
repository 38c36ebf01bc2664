import type { Database } from '../database.ts'

/** An image on its way: in the database, or in a segment. */
export interface ImageOnItsWay {
  readonly digest: string
  readonly size: number
  /** `null` if they lie in a segment. */
  readonly bytes: Buffer | null
  readonly segment: string | null
  readonly offset: number | null
}

/** Bytes of images that wait in the database for the coordinator of a run. */
const mostWaiting = 256 << 20

/** The images of a run that its workers showed, each once; the coordinator keeps them in the run's folder. */
export type ImageTable = ReturnType<typeof makeImageTable>

/** Opens the table of images for one run. */
export function makeImageTable(database: Database, run: string) {
  return {
    /** Those that nobody has put there yet. */
    async lacking(digests: readonly string[]): Promise<readonly string[]> {
      const rows = await database.query<{ digest: string }>(
        `SELECT digest FROM unnest($2::text[]) AS g (digest)
         WHERE NOT EXISTS (SELECT 1 FROM espalier.image i WHERE i.run = $1 AND i.digest = g.digest)`,
        [run, digests],
      )
      return rows.map(({ digest }) => digest)
    },
    /** Puts an image there, unless it is there or no room is left for bytes; says whether it did. */
    async put({ digest, size, bytes, segment, offset }: ImageOnItsWay): Promise<boolean> {
      const rows = await database.query(
        `INSERT INTO espalier.image (run, digest, size, bytes, segment, start)
         SELECT $1, $2, $3::integer, $4::bytea, $5, $6::bigint WHERE $4::bytea IS NULL OR ${mostWaiting} >
           (SELECT coalesce(sum(size), 0) FROM espalier.image WHERE run = $1 AND NOT taken AND bytes IS NOT NULL)
         ON CONFLICT DO NOTHING RETURNING digest`,
        [run, digest, size, bytes, segment, offset],
      )
      return rows.length > 0
    },
    /** Images that the coordinator has not taken. */
    async waiting(most: number): Promise<readonly ImageOnItsWay[]> {
      return await database.query<ImageOnItsWay>(
        `SELECT digest, size, bytes, segment, start::double precision AS offset FROM espalier.image
         WHERE run = $1 AND NOT taken LIMIT $2`,
        [run, most],
      )
    },
    /** Notes that the coordinator has them: their names stay, so that nobody sends them again. */
    async taken(digests: readonly string[]): Promise<void> {
      await database.query(
        `UPDATE espalier.image SET taken = true, bytes = NULL
         WHERE run = $1 AND digest = ANY($2::text[])`,
        [run, digests],
      )
    },
  }
}
