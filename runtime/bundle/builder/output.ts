/** What a build of esbuild's gives. */
export interface Output {
  readonly script: string;
  /** Its sources are real paths, but for the generated entry. */
  readonly map: SourceMap;
}

/** As much of a source map as is looked at. */
export interface SourceMap {
  readonly version: 3;
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly names: readonly string[];
  readonly mappings: string;
}
