"""The numbered steps from an empty database to the newest schema. Steps are added, never changed.

A number is given out once, to Pegboard itself or to one toolset. Nothing is done for that of a toolset which is not
installed, so a database that knew it can still be used. Where that was the highest number, an empty step keeps its
place.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.storage.database import Dialect, StorageError
from pegboard.storage.migration import Migration
from pegboard.toolsets.installed import load_parts

# Those of toolsets are in their folders.
_OWN: dict[int, Migration] = {
    # the catalog
    1: Migration("""
    CREATE TABLE catalog (
        server        {text} NOT NULL,
        fingerprint   {text} NOT NULL,
        era           {text} NOT NULL,
        version       {text} NOT NULL,
        capabilities  {text} NOT NULL,
        server_info   {text} NOT NULL,
        instructions  {text},
        tools         {text} NOT NULL,
        discovered_at {real} NOT NULL,
        ttl           {real},
        PRIMARY KEY (server, fingerprint)
    ){strict};
    """),
    # prompts, resources and templates beside the tools
    2: Migration("""
    ALTER TABLE catalog ADD COLUMN prompts {text};
    ALTER TABLE catalog ADD COLUMN resources {text} NOT NULL DEFAULT '[]';
    ALTER TABLE catalog ADD COLUMN templates {text} NOT NULL DEFAULT '[]';
    """),
    # the tools that are loaded on named boards, in the order they were
    3: Migration("""
    CREATE TABLE board_tools (
        position {serial},
        board    {text} NOT NULL,
        tool     {text} NOT NULL,
        UNIQUE (board, tool)
    ){strict};
    """),
    # why a server could not be asked
    6: Migration("""
    CREATE TABLE server_errors (
        server      {text} NOT NULL,
        fingerprint {text} NOT NULL,
        message     {text} NOT NULL,
        failed_at   {real} NOT NULL,
        PRIMARY KEY (server, fingerprint)
    ){strict};
    """),
    # static tokens: who may come in
    7: Migration("""
    CREATE TABLE tokens (
        id           {text} PRIMARY KEY,
        name         {text} NOT NULL UNIQUE,
        digest       {bytes} NOT NULL,
        rule         {text} NOT NULL,
        created_at   {real} NOT NULL,
        expires_at   {real},
        last_used_at {real}
    ){strict};
    CREATE TABLE tokens_version (version {integer} NOT NULL){strict};
    INSERT INTO tokens_version (version) VALUES (0);
    """),
    # the audit: what was done, chains of it, and the key of its digests
    8: Migration("""
    CREATE TABLE audit (
        id           {text} PRIMARY KEY,
        process      {text} NOT NULL,
        chain        {integer} NOT NULL,
        number       {integer} NOT NULL,
        at           {integer} NOT NULL,
        kind         {text} NOT NULL,
        principal_id {text} NOT NULL,
        principal    {text} NOT NULL,
        client       {text} NOT NULL,
        session      {text} NOT NULL,
        board        {text} NOT NULL,
        server       {text} NOT NULL,
        tool         {text} NOT NULL,
        outcome      {text} NOT NULL,
        us           {integer} NOT NULL,
        args_bytes   {integer} NOT NULL,
        args_digest  {text} NOT NULL,
        arguments    {text} NOT NULL,
        result_bytes {integer} NOT NULL,
        trace        {text} NOT NULL,
        era          {text} NOT NULL,
        network      {text} NOT NULL,
        detail       {text} NOT NULL,
        hash         {text} NOT NULL
    ){strict};
    CREATE TABLE audit_chains (
        process  {text} NOT NULL,
        chain    {integer} NOT NULL,
        day      {text} NOT NULL,
        previous {text} NOT NULL,
        first_id {text} NOT NULL,
        last_id  {text} NOT NULL,
        records  {integer} NOT NULL,
        bytes    {integer} NOT NULL,
        head     {text} NOT NULL,
        PRIMARY KEY (process, chain)
    ){strict};
    CREATE TABLE audit_keys (
        name {text} PRIMARY KEY,
        key  {bytes} NOT NULL
    ){strict};
    """),
    # sign-ins to servers: registrations, grants, those under way, and who does what alone; what is secret is sealed
    9: Migration("""
    CREATE TABLE oauth_clients (
        issuer       {text} NOT NULL,
        redirect_uri {text} NOT NULL,
        sealed       {bytes} NOT NULL,
        PRIMARY KEY (issuer, redirect_uri)
    ){strict};
    CREATE TABLE oauth_grants (
        server      {text} NOT NULL,
        principal   {text} NOT NULL,
        url         {text} NOT NULL,
        issuer      {text} NOT NULL,
        resource    {text},
        scopes      {text} NOT NULL,
        expires_at  {real},
        state       {text} NOT NULL,
        reason      {text} NOT NULL,
        version     {integer} NOT NULL,
        sealed      {bytes} NOT NULL,
        created_at  {real} NOT NULL,
        updated_at  {real} NOT NULL,
        lease_by    {text} NOT NULL DEFAULT '',
        lease_until {real} NOT NULL DEFAULT 0,
        PRIMARY KEY (server, principal)
    ){strict};
    CREATE TABLE oauth_flows (
        flow_id    {text} PRIMARY KEY,
        state_hash {text} NOT NULL UNIQUE,
        server     {text} NOT NULL,
        principal  {text} NOT NULL,
        sealed     {bytes} NOT NULL,
        created_at {real} NOT NULL,
        expires_at {real} NOT NULL,
        outcome    {text} NOT NULL,
        is_used    {integer} NOT NULL
    ){strict};
    CREATE TABLE oauth_locks (
        name       {text} PRIMARY KEY,
        holder     {text} NOT NULL,
        held_until {real} NOT NULL
    ){strict};
    CREATE TABLE oauth_version (version {integer} NOT NULL){strict};
    INSERT INTO oauth_version (version) VALUES (0);
    """),
    # the page: the key of its cookies
    10: Migration("""
    CREATE TABLE page_keys (
        name {text} PRIMARY KEY,
        key  {bytes} NOT NULL
    ){strict};
    """),
    # the page: which sign-ins go on
    11: Migration("""
    CREATE TABLE page_sessions (
        id         {text} PRIMARY KEY,
        principal  {text} NOT NULL,
        expires_at {real} NOT NULL
    ){strict};
    CREATE INDEX page_sessions_by_principal ON page_sessions (principal);
    """),
    # pins: which definitions of a server are approved
    12: Migration("""
    CREATE TABLE pins (
        server      {text} NOT NULL,
        fingerprint {text} NOT NULL,
        holder      {text} NOT NULL,
        document    {text} NOT NULL,
        PRIMARY KEY (server, fingerprint, holder)
    ){strict};
    CREATE TABLE pin_definitions (
        server      {text} NOT NULL,
        fingerprint {text} NOT NULL,
        digest      {text} NOT NULL,
        definition  {text} NOT NULL,
        PRIMARY KEY (server, fingerprint, digest)
    ){strict};
    CREATE TABLE pins_version (version {integer} NOT NULL){strict};
    INSERT INTO pins_version (version) VALUES (0);
    """),
    # results that were too large for whoever called: what is known of each, and its text in pieces
    13: Migration("""
    CREATE TABLE kept_results (
        id         {text} PRIMARY KEY,
        principal  {text} NOT NULL,
        session    {text} NOT NULL,
        facts      {text} NOT NULL,
        characters {integer} NOT NULL,
        bytes      {integer} NOT NULL,
        is_whole   {integer} NOT NULL,
        created_at {real} NOT NULL,
        read_at    {real} NOT NULL
    ){strict};
    CREATE INDEX kept_results_by_principal ON kept_results (principal, created_at);
    CREATE TABLE kept_result_pieces (
        result {text} NOT NULL,
        number {integer} NOT NULL,
        data   {bytes} NOT NULL,
        PRIMARY KEY (result, number)
    ){strict};
    """),
    # how many kept results each principal has, and how large they are, rows and facts included
    14: Migration("""
    CREATE TABLE kept_result_totals (
        principal {text} PRIMARY KEY,
        results   {integer} NOT NULL,
        bytes     {integer} NOT NULL
    ){strict};
    UPDATE kept_results SET bytes = bytes + 1000 + length(facts);
    INSERT INTO kept_result_totals (principal, results, bytes)
        SELECT principal, COUNT(*), SUM(bytes) FROM kept_results WHERE is_whole = 1 GROUP BY principal;
    CREATE INDEX kept_results_by_reading ON kept_results (read_at);
    CREATE INDEX kept_results_by_age ON kept_results (created_at);
    """),
}


def _number_steps() -> tuple[Migration, ...]:
    """All steps in their order, those of installed toolsets among them."""
    numbered = dict(_OWN)
    for toolset, part in load_parts("migrations").items():
        if taken := numbered.keys() & part.STEPS.keys():
            raise ValueError(f"the toolset {toolset} uses numbers of steps that are taken: {sorted(taken)}")
        numbered.update(part.STEPS)
    return tuple(numbered.get(number, Migration()) for number in range(1, max(numbered) + 1))


STEPS = _number_steps()


def missing_steps(version: int, name: str, dialect: Dialect, steps: Sequence[Migration]) -> list[str]:
    """What a database of this version still needs of these steps; one of a newer Pegboard is refused."""
    if version > len(steps):
        reason = f"was written by a newer Pegboard (schema {version}, this one knows {len(steps)})"
        raise StorageError(f"{name} {reason}", "update Pegboard", reason=f"it {reason}")
    return [script for step in steps[version:] if (script := step.script(dialect))]
