BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
    change_id INTEGER NOT NULL REFERENCES changes (id),
    happened_at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('acknowledged', 'withdrawn', 'expired')),
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    until TEXT,
    PRIMARY KEY (change_id, happened_at)
) STRICT, WITHOUT ROWID;
INSERT INTO "acknowledgements" VALUES(2,'2026-03-08T02:00:00.000Z','acknowledged','','the price of a fix',NULL);
INSERT INTO "acknowledgements" VALUES(2,'2026-03-08T03:00:00.000Z','acknowledged','a person','the price of a fix','2026-04-07');
CREATE TABLE activities (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    activity TEXT NOT NULL,
    first_second INTEGER NOT NULL CHECK (first_second >= 1),
    last_second INTEGER NOT NULL CHECK (last_second >= first_second),
    PRIMARY KEY (run_id, activity, first_second)
) STRICT, WITHOUT ROWID;
INSERT INTO "activities" VALUES(17,'checkpoint',1,2);
INSERT INTO "activities" VALUES(17,'stall',2,2);
INSERT INTO "activities" VALUES(18,'checkpoint',1,2);
INSERT INTO "activities" VALUES(18,'stall',2,2);
INSERT INTO "activities" VALUES(19,'checkpoint',1,2);
INSERT INTO "activities" VALUES(19,'stall',2,2);
INSERT INTO "activities" VALUES(20,'checkpoint',1,2);
INSERT INTO "activities" VALUES(20,'stall',2,2);
INSERT INTO "activities" VALUES(21,'checkpoint',1,2);
INSERT INTO "activities" VALUES(21,'stall',2,2);
INSERT INTO "activities" VALUES(22,'checkpoint',1,2);
INSERT INTO "activities" VALUES(22,'stall',2,2);
INSERT INTO "activities" VALUES(23,'checkpoint',1,2);
INSERT INTO "activities" VALUES(23,'stall',2,2);
INSERT INTO "activities" VALUES(24,'checkpoint',1,2);
INSERT INTO "activities" VALUES(24,'stall',2,2);
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    nonce TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('change', 'build', 'crash', 'summary')),
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    wanted TEXT NOT NULL CHECK (wanted IN ('open', 'closed')),
    closing TEXT NOT NULL,
    within TEXT,
    silenced TEXT,
    issue INTEGER,
    issue_state TEXT CHECK (issue_state IN ('open', 'closed')),
    sent_digest TEXT,
    attempts INTEGER NOT NULL,
    last_error TEXT,
    not_before TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, asked_state TEXT CHECK (asked_state IN ('open', 'closed')), repository TEXT, sent_title TEXT, sent_body TEXT, asked_after INTEGER, closed_as TEXT CHECK (closed_as IN ('completed', 'not_planned', 'duplicate')), seen_at TEXT, resolved_at TEXT, unmuted_at TEXT, members TEXT, assignee TEXT, assigned TEXT,
    CHECK ((issue IS NULL) = (issue_state IS NULL))
) STRICT;
INSERT INTO "alerts" VALUES(1,'alert1','15d1d7bef333b47f','change','insert is 1 % slower','by much','open','',NULL,NULL,7,'open',NULL,0,NULL,NULL,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z','open','owner/name',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'a-person','a-person');
INSERT INTO "alerts" VALUES(2,'alert2','6f8bf244c14b0414','change','insert is 2 % slower','by much','open','',NULL,NULL,NULL,NULL,NULL,1,'the tracker was away','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'a-person','a-person');
INSERT INTO "alerts" VALUES(3,'alert3','304c9b81880f7460','change','insert is 3 % slower','by much','open','',NULL,'closed by a person',NULL,NULL,NULL,0,NULL,NULL,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'a-person','a-person');
INSERT INTO "alerts" VALUES(4,'alert4','465cf92f265151c8','change','insert is 4 % slower','by much','open','','alert1',NULL,NULL,NULL,NULL,0,NULL,NULL,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'a-person','a-person');
CREATE TABLE bisect_events (
    bisect_id INTEGER NOT NULL REFERENCES bisects (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    kind TEXT NOT NULL CHECK (kind IN ('session', 'built', 'excluded', 'verdict', 'profiled')),
    session_uid TEXT,
    detail TEXT NOT NULL,
    happened_at TEXT NOT NULL,
    PRIMARY KEY (bisect_id, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "bisect_events" VALUES(1,1,'session','searching','{}','2026-03-08T02:00:00.000Z');
INSERT INTO "bisect_events" VALUES(1,2,'excluded',NULL,'{"position":2,"reason":"cc: error"}','2026-03-08T02:00:00.000Z');
CREATE TABLE bisects (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    machine_id INTEGER NOT NULL REFERENCES machines (id),
    question TEXT NOT NULL,
    span TEXT NOT NULL,
    change_fingerprint TEXT,
    began_at TEXT NOT NULL
) STRICT;
INSERT INTO "bisects" VALUES(1,'b1',1,'{"bad":"postgres@git:c0ffee123454","build_cost_rounds":2.5,"confidence":0.95,"direction":"worse","engine":"postgres","git":"https://example.org/postgres.git","good":"postgres@git:c0ffee123451","metric":"qps","profile":"short","rules":{"confidence":0.95,"direction":"worse","higher_is_better":true,"least_rounds":3,"least_scale":0.004,"most_confirming":300,"most_rounds":1500,"scale_spread":0.7,"threshold":0.02,"typical_scale":0.025,"wobble":0.003},"seconds":null,"step":"update-index","suite":"write-heavy"}','{"bad":"","collapsed":[],"points":[{"author":"","commit":"","date":"","message":"","subject":"","version":"postgres@git:c0ffee123451"},{"author":"","commit":"","date":"","message":"","subject":"","version":"postgres@git:c0ffee123452"},{"author":"","commit":"","date":"","message":"","subject":"","version":"postgres@git:c0ffee123453"},{"author":"","commit":"","date":"","message":"","subject":"","version":"postgres@git:c0ffee123454"}]}','c0ffee01','2026-03-08T02:00:00.000Z');
CREATE TABLE builds (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    engine TEXT NOT NULL,
    release TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_digest TEXT NOT NULL,
    compiler TEXT NOT NULL,
    manifest TEXT NOT NULL
) STRICT;
INSERT INTO "builds" VALUES(1,'key of postgres@17.11','postgres','17.11','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"key":"abababababababababababababababababababababababababababababababab","patches":[],"release":"18.6","source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"},"version":"postgres@18.6"}');
INSERT INTO "builds" VALUES(2,'key of postgres@git:c0ffee123451','postgres','git:c0ffee123451','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"key":"abababababababababababababababababababababababababababababababab","patches":[],"release":"18.6","source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"},"version":"postgres@18.6"}');
INSERT INTO "builds" VALUES(3,'key of postgres@git:c0ffee123452','postgres','git:c0ffee123452','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"key":"abababababababababababababababababababababababababababababababab","patches":[],"release":"18.6","source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"},"version":"postgres@18.6"}');
INSERT INTO "builds" VALUES(4,'key of postgres@git:c0ffee123453','postgres','git:c0ffee123453','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"key":"abababababababababababababababababababababababababababababababab","patches":[],"release":"18.6","source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"},"version":"postgres@18.6"}');
INSERT INTO "builds" VALUES(5,'key of postgres@git:c0ffee123454','postgres','git:c0ffee123454','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"key":"abababababababababababababababababababababababababababababababab","patches":[],"release":"18.6","source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"},"version":"postgres@18.6"}');
CREATE TABLE calibrations (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    step TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    sd REAL NOT NULL CHECK (sd >= 0),
    degrees_of_freedom REAL NOT NULL CHECK (degrees_of_freedom > 0),
    rounds INTEGER NOT NULL,
    PRIMARY KEY (session_id, step, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "calibrations" VALUES(8,'insert','qps',0.01,9.0,10);
CREATE TABLE change_owners (
    change_id INTEGER NOT NULL REFERENCES changes (id),
    place INTEGER NOT NULL CHECK (place >= 1),
    account TEXT NOT NULL,
    is_assignee INTEGER NOT NULL CHECK (is_assignee IN (0, 1)),
    rule TEXT NOT NULL,
    PRIMARY KEY (change_id, place)
) STRICT, WITHOUT ROWID;
INSERT INTO "change_owners" VALUES(1,1,'a-person',1,'suites x');
CREATE TABLE change_series (
    change_id INTEGER NOT NULL REFERENCES changes (id),
    series_id INTEGER NOT NULL REFERENCES series (id),
    last_before_id INTEGER NOT NULL REFERENCES sessions (id),
    first_after_id INTEGER NOT NULL REFERENCES sessions (id),
    raised_id INTEGER NOT NULL REFERENCES sessions (id),
    level_before REAL NOT NULL,
    level_after REAL NOT NULL,
    ratio_low REAL NOT NULL,
    ratio_high REAL NOT NULL,
    confidence REAL NOT NULL,
    gone_id INTEGER REFERENCES sessions (id),
    PRIMARY KEY (change_id, series_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "change_series" VALUES(1,7,1,2,2,1.0,0.93,0.92,0.94,0.99,NULL);
INSERT INTO "change_series" VALUES(2,3,1,2,2,1.0,0.93,0.92,0.94,0.99,NULL);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    suite TEXT NOT NULL,
    direction TEXT NOT NULL CHECK (direction IN ('regression', 'improvement', 'mixed', 'shift')),
    status TEXT NOT NULL CHECK (status IN ('open', 'closed', 'acknowledged', 'explained')),
    reason TEXT,
    found_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
INSERT INTO "changes" VALUES(1,'c0ffee01','postgres@REL_18_STABLE','write-heavy','regression','open',NULL,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z');
INSERT INTO "changes" VALUES(2,'c0ffee02','postgres@REL_18_STABLE','write-heavy','regression','acknowledged','the price of a fix','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z');
CREATE TABLE configurations (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL
) STRICT;
INSERT INTO "configurations" VALUES(1,'41eabacbdf89eab34d4f61117cadc3d420da88b2e2a84192e8707e516aad19e9','{"server":"postgres@17.11","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(2,'0bc426431eb783dd01b686f1baddd2479364f6c345b9e77548e9adbb2516d756','{"server":"postgres@git:c0ffee123451","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(3,'43557db1864deb4589d9dc02567b748e5e154833e65478b08458df6c7c4ddad7','{"server":"postgres@git:c0ffee123452","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(4,'3e4b2aca9bf4b2b4db612a07aa3789ba665de44960e31c6e05cc5e931a9ff19a','{"server":"postgres@git:c0ffee123453","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(5,'a541d908b6222eed69f3bbc8fe9d202711f77da7a4dce3487c20677c8a7a8a6d','{"server":"postgres@git:c0ffee123454","shared_buffers":"1GB"}');
CREATE TABLE confirmations (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    series_id INTEGER NOT NULL REFERENCES series (id),
    question TEXT NOT NULL CHECK (question IN ('new', 'gone')),
    before_id INTEGER NOT NULL REFERENCES sessions (id),
    after_id INTEGER NOT NULL REFERENCES sessions (id),
    finding TEXT NOT NULL CHECK (finding IN ('more', 'less', 'same', 'unknown')),
    level_before REAL NOT NULL,
    ratio REAL NOT NULL,
    ratio_low REAL NOT NULL,
    ratio_high REAL NOT NULL,
    rounds INTEGER NOT NULL,
    confidence REAL NOT NULL,
    PRIMARY KEY (session_id, series_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "confirmations" VALUES(10,3,'new',3,4,'less',9.30187602476654884497e-01,9.30512468310169205132e-01,9.30366883676107203626e-01,0.930658075725383,5,0.999);
INSERT INTO "confirmations" VALUES(10,4,'new',3,4,'more',1.07509218939717299257e+00,1.07467662611337355649e+00,1.0745084860737614818e+00,1.07484479246375830285e+00,5,0.999);
INSERT INTO "confirmations" VALUES(10,7,'new',3,4,'unknown',0.930222415767847,9.30512468310138785021e-01,8.21602052524291415203e-01,1.05385989606571395249e+00,5,0.999);
INSERT INTO "confirmations" VALUES(10,8,'new',3,4,'more',1.07509227279416830214e+00,1.07467662611337355649e+00,1.0745084860737614818e+00,1.07484479246375830285e+00,5,0.999);
CREATE TABLE counted_profiles (
    run_id INTEGER PRIMARY KEY REFERENCES runs (id),
    queries REAL NOT NULL CHECK (queries > 0),
    stacks BLOB NOT NULL,
    calls BLOB NOT NULL
) STRICT;
INSERT INTO "counted_profiles" VALUES(17,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(18,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(19,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(20,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(21,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(22,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(23,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
INSERT INTO "counted_profiles" VALUES(24,500.0,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB',X'78DAAB56CA484D2C882F2D48492C4955B2323530A8050045A1068C');
CREATE TABLE dropped_rounds (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    step TEXT NOT NULL,
    repetition INTEGER NOT NULL CHECK (repetition >= 1),
    dropped_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    measured TEXT NOT NULL
) STRICT;
INSERT INTO "dropped_rounds" VALUES(1,8,'insert',1,'2026-03-08T02:00:00.000Z','steal: 12 % of the CPU','{"postgres@17.11":800.5}');
CREATE TABLE gaps (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    step TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (session_id, branch, step)
) STRICT, WITHOUT ROWID;
INSERT INTO "gaps" VALUES(2,'postgres@REL_18_STABLE','insert','the server did not start');
CREATE TABLE kinds (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    kind TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    value REAL NOT NULL,
    PRIMARY KEY (run_id, kind, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "kinds" VALUES(17,'look-up','qps',501.5625);
INSERT INTO "kinds" VALUES(17,'payment','qps',501.5625);
INSERT INTO "kinds" VALUES(18,'look-up','qps',466.5625);
INSERT INTO "kinds" VALUES(18,'payment','qps',466.5625);
INSERT INTO "kinds" VALUES(19,'look-up','qps',501.625);
INSERT INTO "kinds" VALUES(19,'payment','qps',501.625);
INSERT INTO "kinds" VALUES(20,'look-up','qps',466.625);
INSERT INTO "kinds" VALUES(20,'payment','qps',466.625);
INSERT INTO "kinds" VALUES(21,'look-up','qps',501.5625);
INSERT INTO "kinds" VALUES(21,'payment','qps',501.5625);
INSERT INTO "kinds" VALUES(22,'look-up','qps',466.5625);
INSERT INTO "kinds" VALUES(22,'payment','qps',466.5625);
INSERT INTO "kinds" VALUES(23,'look-up','qps',501.625);
INSERT INTO "kinds" VALUES(23,'payment','qps',501.625);
INSERT INTO "kinds" VALUES(24,'look-up','qps',466.625);
INSERT INTO "kinds" VALUES(24,'payment','qps',466.625);
CREATE TABLE machines (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    hostname TEXT NOT NULL,
    cpu_model TEXT NOT NULL,
    cores INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    kernel TEXT NOT NULL,
    operating_system TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
INSERT INTO "machines" VALUES(1,'f00d','db1','EPYC 9454P',48,137438953472,'6.8.0-55','Ubuntu 24.04','{"governor":"performance"}');
CREATE TABLE measurements (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    metric TEXT NOT NULL REFERENCES metrics (name),
    value REAL NOT NULL,
    PRIMARY KEY (run_id, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "measurements" VALUES(1,'qps',1001.125);
INSERT INTO "measurements" VALUES(1,'server_cpu_us_per_op',9.98876264202771864137e+01);
INSERT INTO "measurements" VALUES(2,'qps',931.125);
INSERT INTO "measurements" VALUES(2,'server_cpu_us_per_op',1.07396966035709496623e+02);
INSERT INTO "measurements" VALUES(3,'qps',1001.25);
INSERT INTO "measurements" VALUES(3,'server_cpu_us_per_op',9.9875156054931338188e+01);
INSERT INTO "measurements" VALUES(4,'qps',931.25);
INSERT INTO "measurements" VALUES(4,'server_cpu_us_per_op',1.07382550335570471134e+02);
INSERT INTO "measurements" VALUES(5,'qps',1001.125);
INSERT INTO "measurements" VALUES(5,'server_cpu_us_per_op',9.98876264202771864137e+01);
INSERT INTO "measurements" VALUES(6,'qps',931.125);
INSERT INTO "measurements" VALUES(6,'server_cpu_us_per_op',1.07396966035709496623e+02);
INSERT INTO "measurements" VALUES(7,'qps',1001.25);
INSERT INTO "measurements" VALUES(7,'server_cpu_us_per_op',9.9875156054931338188e+01);
INSERT INTO "measurements" VALUES(8,'qps',931.25);
INSERT INTO "measurements" VALUES(8,'server_cpu_us_per_op',1.07382550335570471134e+02);
INSERT INTO "measurements" VALUES(9,'qps',1002.125);
INSERT INTO "measurements" VALUES(9,'server_cpu_us_per_op',9.97879506049644504628e+01);
INSERT INTO "measurements" VALUES(10,'qps',932.125);
INSERT INTO "measurements" VALUES(10,'server_cpu_us_per_op',1.0728174869250368317e+02);
INSERT INTO "measurements" VALUES(11,'qps',1002.25);
INSERT INTO "measurements" VALUES(11,'server_cpu_us_per_op',9.97755051134946313595e+01);
INSERT INTO "measurements" VALUES(12,'qps',932.25);
INSERT INTO "measurements" VALUES(12,'server_cpu_us_per_op',1.07267363904532047062e+02);
INSERT INTO "measurements" VALUES(13,'qps',1002.125);
INSERT INTO "measurements" VALUES(13,'server_cpu_us_per_op',9.97879506049644504628e+01);
INSERT INTO "measurements" VALUES(15,'qps',1002.25);
INSERT INTO "measurements" VALUES(15,'server_cpu_us_per_op',9.97755051134946313595e+01);
INSERT INTO "measurements" VALUES(17,'qps',1003.125);
INSERT INTO "measurements" VALUES(17,'server_cpu_us_per_op',9.9688473520249218044e+01);
INSERT INTO "measurements" VALUES(18,'qps',933.125);
INSERT INTO "measurements" VALUES(18,'server_cpu_us_per_op',1.07166778298727393802e+02);
INSERT INTO "measurements" VALUES(19,'qps',1003.25);
INSERT INTO "measurements" VALUES(19,'server_cpu_us_per_op',99.676052828308);
INSERT INTO "measurements" VALUES(20,'qps',933.25);
INSERT INTO "measurements" VALUES(20,'server_cpu_us_per_op',1.07152424323600314437e+02);
INSERT INTO "measurements" VALUES(21,'qps',1003.125);
INSERT INTO "measurements" VALUES(21,'server_cpu_us_per_op',9.9688473520249218044e+01);
INSERT INTO "measurements" VALUES(22,'qps',933.125);
INSERT INTO "measurements" VALUES(22,'server_cpu_us_per_op',1.07166778298727393802e+02);
INSERT INTO "measurements" VALUES(23,'qps',1003.25);
INSERT INTO "measurements" VALUES(23,'server_cpu_us_per_op',99.676052828308);
INSERT INTO "measurements" VALUES(24,'qps',933.25);
INSERT INTO "measurements" VALUES(24,'server_cpu_us_per_op',1.07152424323600314437e+02);
INSERT INTO "measurements" VALUES(25,'qps',1004.125);
INSERT INTO "measurements" VALUES(25,'server_cpu_us_per_op',9.95891945723888909452e+01);
INSERT INTO "measurements" VALUES(26,'qps',934.125);
INSERT INTO "measurements" VALUES(26,'server_cpu_us_per_op',1.0705205406128730772e+02);
INSERT INTO "measurements" VALUES(27,'qps',1004.25);
INSERT INTO "measurements" VALUES(27,'server_cpu_us_per_op',9.95767986059248215707e+01);
INSERT INTO "measurements" VALUES(28,'qps',934.25);
INSERT INTO "measurements" VALUES(28,'server_cpu_us_per_op',1.0703773080010704177e+02);
INSERT INTO "measurements" VALUES(29,'qps',1004.125);
INSERT INTO "measurements" VALUES(29,'server_cpu_us_per_op',9.95891945723888909452e+01);
INSERT INTO "measurements" VALUES(30,'qps',934.125);
INSERT INTO "measurements" VALUES(30,'server_cpu_us_per_op',1.0705205406128730772e+02);
INSERT INTO "measurements" VALUES(31,'qps',1004.25);
INSERT INTO "measurements" VALUES(31,'server_cpu_us_per_op',9.95767986059248215707e+01);
INSERT INTO "measurements" VALUES(32,'qps',934.25);
INSERT INTO "measurements" VALUES(32,'server_cpu_us_per_op',1.0703773080010704177e+02);
INSERT INTO "measurements" VALUES(33,'qps',1005.125);
INSERT INTO "measurements" VALUES(33,'server_cpu_us_per_op',9.94901131700037240097e+01);
INSERT INTO "measurements" VALUES(34,'qps',935.125);
INSERT INTO "measurements" VALUES(34,'server_cpu_us_per_op',1.06937575190482561996e+02);
INSERT INTO "measurements" VALUES(35,'qps',1005.125);
INSERT INTO "measurements" VALUES(35,'server_cpu_us_per_op',9.94901131700037240097e+01);
INSERT INTO "measurements" VALUES(36,'qps',935.125);
INSERT INTO "measurements" VALUES(36,'server_cpu_us_per_op',1.06937575190482561996e+02);
INSERT INTO "measurements" VALUES(37,'qps',1006.125);
INSERT INTO "measurements" VALUES(37,'server_cpu_us_per_op',99.3912287240651);
INSERT INTO "measurements" VALUES(38,'qps',936.125);
INSERT INTO "measurements" VALUES(38,'server_cpu_us_per_op',1.0682334089998664694e+02);
INSERT INTO "measurements" VALUES(39,'qps',1006.125);
INSERT INTO "measurements" VALUES(39,'server_cpu_us_per_op',99.3912287240651);
INSERT INTO "measurements" VALUES(40,'qps',936.125);
INSERT INTO "measurements" VALUES(40,'server_cpu_us_per_op',1.0682334089998664694e+02);
INSERT INTO "measurements" VALUES(41,'qps',1007.125);
INSERT INTO "measurements" VALUES(41,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(42,'qps',937.125);
INSERT INTO "measurements" VALUES(42,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(43,'qps',1007.125);
INSERT INTO "measurements" VALUES(43,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(44,'qps',937.125);
INSERT INTO "measurements" VALUES(44,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(45,'qps',1007.125);
INSERT INTO "measurements" VALUES(45,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(46,'qps',937.125);
INSERT INTO "measurements" VALUES(46,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(47,'qps',1007.125);
INSERT INTO "measurements" VALUES(47,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(48,'qps',937.125);
INSERT INTO "measurements" VALUES(48,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(49,'qps',1007.125);
INSERT INTO "measurements" VALUES(49,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(50,'qps',937.125);
INSERT INTO "measurements" VALUES(50,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(51,'qps',1007.125);
INSERT INTO "measurements" VALUES(51,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(52,'qps',937.125);
INSERT INTO "measurements" VALUES(52,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(53,'qps',1007.125);
INSERT INTO "measurements" VALUES(53,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(54,'qps',937.125);
INSERT INTO "measurements" VALUES(54,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(55,'qps',1007.25);
INSERT INTO "measurements" VALUES(55,'server_cpu_us_per_op',9.92802184164805225953e+01);
INSERT INTO "measurements" VALUES(56,'qps',937.25);
INSERT INTO "measurements" VALUES(56,'server_cpu_us_per_op',1.06695118698319546979e+02);
INSERT INTO "measurements" VALUES(57,'qps',1007.375);
INSERT INTO "measurements" VALUES(57,'server_cpu_us_per_op',9.92678992430822688692e+01);
INSERT INTO "measurements" VALUES(58,'qps',937.375);
INSERT INTO "measurements" VALUES(58,'server_cpu_us_per_op',1.06680890785438052146e+02);
INSERT INTO "measurements" VALUES(59,'qps',1007.5);
INSERT INTO "measurements" VALUES(59,'server_cpu_us_per_op',9.92555831265508743416e+01);
INSERT INTO "measurements" VALUES(60,'qps',937.5);
INSERT INTO "measurements" VALUES(60,'server_cpu_us_per_op',1.06666666666666671398e+02);
INSERT INTO "measurements" VALUES(61,'qps',1007.625);
INSERT INTO "measurements" VALUES(61,'server_cpu_us_per_op',9.9243270065748660615e+01);
INSERT INTO "measurements" VALUES(62,'qps',937.625);
INSERT INTO "measurements" VALUES(62,'server_cpu_us_per_op',1.06652446340487941259e+02);
INSERT INTO "measurements" VALUES(63,'qps',1007.125);
INSERT INTO "measurements" VALUES(63,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(64,'qps',937.125);
INSERT INTO "measurements" VALUES(64,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(65,'qps',1007.25);
INSERT INTO "measurements" VALUES(65,'server_cpu_us_per_op',9.92802184164805225953e+01);
INSERT INTO "measurements" VALUES(66,'qps',937.25);
INSERT INTO "measurements" VALUES(66,'server_cpu_us_per_op',1.06695118698319546979e+02);
INSERT INTO "measurements" VALUES(67,'qps',1007.375);
INSERT INTO "measurements" VALUES(67,'server_cpu_us_per_op',9.92678992430822688692e+01);
INSERT INTO "measurements" VALUES(68,'qps',937.375);
INSERT INTO "measurements" VALUES(68,'server_cpu_us_per_op',1.06680890785438052146e+02);
INSERT INTO "measurements" VALUES(69,'qps',1007.5);
INSERT INTO "measurements" VALUES(69,'server_cpu_us_per_op',9.92555831265508743416e+01);
INSERT INTO "measurements" VALUES(70,'qps',937.5);
INSERT INTO "measurements" VALUES(70,'server_cpu_us_per_op',1.06666666666666671398e+02);
INSERT INTO "measurements" VALUES(71,'qps',1007.625);
INSERT INTO "measurements" VALUES(71,'server_cpu_us_per_op',9.9243270065748660615e+01);
INSERT INTO "measurements" VALUES(72,'qps',937.625);
INSERT INTO "measurements" VALUES(72,'server_cpu_us_per_op',1.06652446340487941259e+02);
CREATE TABLE metrics (
    name TEXT NOT NULL PRIMARY KEY,
    unit TEXT NOT NULL,
    better TEXT NOT NULL CHECK (better IN ('higher', 'lower', 'neither')),
    description TEXT NOT NULL
) STRICT;
INSERT INTO "metrics" VALUES('qps','queries/s','higher','queries finished per second over the whole step');
INSERT INTO "metrics" VALUES('tps','transactions/s','higher','transactions finished per second over the whole step');
INSERT INTO "metrics" VALUES('transactions','transactions','neither','transactions finished: the work of the step');
INSERT INTO "metrics" VALUES('counted_transactions','transactions','neither','transactions whose instructions a counted pass counts');
INSERT INTO "metrics" VALUES('equal_work_queries','queries','neither','the first queries of the round, warm-up included, over which log and storage were counted: each version finished as many');
INSERT INTO "metrics" VALUES('seconds','s','neither','length of the measured window');
INSERT INTO "metrics" VALUES('censored_seconds','s','neither','the limit at which a query was ended: it would have taken longer');
INSERT INTO "metrics" VALUES('errors','errors','lower','failed or retried transactions');
INSERT INTO "metrics" VALUES('retried_serialisation','transactions','lower','transactions that a serialisation failure rolled back, and that were begun again');
INSERT INTO "metrics" VALUES('retried_deadlock','transactions','lower','transactions that a deadlock rolled back, and that were begun again');
INSERT INTO "metrics" VALUES('retried_duplicate_key','transactions','lower','transactions that a duplicate key rolled back, and that were begun again');
INSERT INTO "metrics" VALUES('failed_serialisation','transactions','lower','transactions that a serialisation failure ended, and that were not begun again');
INSERT INTO "metrics" VALUES('failed_deadlock','transactions','lower','transactions that a deadlock ended, and that were not begun again');
INSERT INTO "metrics" VALUES('deadlocks','transactions','lower','transactions that the server rolled back because of a deadlock, those of the warm-up included');
INSERT INTO "metrics" VALUES('refused_transactions','transactions','neither','transactions that the application itself ended without committing');
INSERT INTO "metrics" VALUES('late_seconds','s','lower','at a rate, the most that a transaction began later than it was due');
INSERT INTO "metrics" VALUES('overload','ratio','lower','at a rate, 1 if the server did not keep up, else 0');
INSERT INTO "metrics" VALUES('background_share','ratio','higher','transactions beside the measured ones, carried out of those due: the least of all kinds');
INSERT INTO "metrics" VALUES('most_apart','transactions','lower','the most transactions by which one kind was ahead of another that keeps pace with it');
INSERT INTO "metrics" VALUES('start_seconds','s','lower','start of the server from the loaded data, until it accepts connections');
INSERT INTO "metrics" VALUES('first_answer_seconds','s','lower','from then until the first query is answered, on a connection of its own');
INSERT INTO "metrics" VALUES('connect_ms','ms','lower','connecting, one statement and disconnecting, before the load: the median');
INSERT INTO "metrics" VALUES('recovery_seconds','s','lower','start of the server after the same transactions and a crash, until it accepts connections');
INSERT INTO "metrics" VALUES('proved_rows','rows','neither','rows that are those of the base after the transactions of a counted pass and a crash');
INSERT INTO "metrics" VALUES('check_seconds','s','lower','asking the checks of the suite, which is not part of the step');
INSERT INTO "metrics" VALUES('latency_mean_ms','ms','lower','mean latency of a transaction');
INSERT INTO "metrics" VALUES('latency_p50_ms','ms','lower','median latency of a transaction');
INSERT INTO "metrics" VALUES('latency_p95_ms','ms','lower','95th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_p99_ms','ms','lower','99th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_p999_ms','ms','lower','99.9th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_max_ms','ms','lower','slowest transaction');
INSERT INTO "metrics" VALUES('latency_second_ms','ms','lower','slowest transaction in each second of work: the median over the seconds');
INSERT INTO "metrics" VALUES('seconds_beyond_10_ms','s','lower','seconds of work in which a transaction ended that took longer than 10 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_20_ms','s','lower','seconds of work in which a transaction ended that took longer than 20 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_50_ms','s','lower','seconds of work in which a transaction ended that took longer than 50 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_100_ms','s','lower','seconds of work in which a transaction ended that took longer than 100 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_200_ms','s','lower','seconds of work in which a transaction ended that took longer than 200 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_500_ms','s','lower','seconds of work in which a transaction ended that took longer than 500 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_1000_ms','s','lower','seconds of work in which a transaction ended that took longer than 1000 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_2000_ms','s','lower','seconds of work in which a transaction ended that took longer than 2000 ms');
INSERT INTO "metrics" VALUES('seconds_beyond_5000_ms','s','lower','seconds of work in which a transaction ended that took longer than 5000 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_100_us','transactions','lower','transactions that took longer than 0.1 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_200_us','transactions','lower','transactions that took longer than 0.2 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_500_us','transactions','lower','transactions that took longer than 0.5 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_1_ms','transactions','lower','transactions that took longer than 1 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_2_ms','transactions','lower','transactions that took longer than 2 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_5_ms','transactions','lower','transactions that took longer than 5 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_10_ms','transactions','lower','transactions that took longer than 10 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_20_ms','transactions','lower','transactions that took longer than 20 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_50_ms','transactions','lower','transactions that took longer than 50 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_100_ms','transactions','lower','transactions that took longer than 100 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_200_ms','transactions','lower','transactions that took longer than 200 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_500_ms','transactions','lower','transactions that took longer than 500 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_1000_ms','transactions','lower','transactions that took longer than 1000 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_2000_ms','transactions','lower','transactions that took longer than 2000 ms');
INSERT INTO "metrics" VALUES('transactions_beyond_5000_ms','transactions','lower','transactions that took longer than 5000 ms');
INSERT INTO "metrics" VALUES('latency_max_second','s','neither','second of the step''s work, from 1, in which its slowest transaction ended');
INSERT INTO "metrics" VALUES('qps_first_third','queries/s','higher','queries finished per second in the first third of the seconds of the step');
INSERT INTO "metrics" VALUES('qps_last_third','queries/s','higher','queries finished per second in the last third of the seconds of the step');
INSERT INTO "metrics" VALUES('qps_cv','ratio','lower','coefficient of variation of the per-second throughput');
INSERT INTO "metrics" VALUES('qps_p1_over_median','ratio','higher','1st percentile of per-second throughput over its median');
INSERT INTO "metrics" VALUES('qps_cv_detrended','ratio','lower','coefficient of variation of the per-second throughput around its trend, without the tenth of the seconds that is furthest from it');
INSERT INTO "metrics" VALUES('qps_worst_second','ratio','higher','throughput of the worst second over its trend');
INSERT INTO "metrics" VALUES('server_cpu_us_per_op','µs/query','lower','CPU time of all server processes per query');
INSERT INTO "metrics" VALUES('client_cpu_us_per_op','µs/query','lower','CPU time of the load generator per query');
INSERT INTO "metrics" VALUES('machine_cpu_us_per_op','µs/query','lower','busy CPU time of the whole machine per query');
INSERT INTO "metrics" VALUES('server_cs_per_op','switches/query','lower','context switches of the server per query');
INSERT INTO "metrics" VALUES('client_cs_per_op','switches/query','lower','context switches of the load generator per query');
INSERT INTO "metrics" VALUES('machine_cs_per_op','switches/query','lower','context switches of the whole machine per query');
INSERT INTO "metrics" VALUES('server_read_kb_per_op','KiB/query','lower','read from storage by server processes per query');
INSERT INTO "metrics" VALUES('server_written_kb_per_op','KiB/query','lower','sent to storage by server processes per query');
INSERT INTO "metrics" VALUES('client_read_kb_per_op','KiB/query','lower','read from storage by the load generator per query');
INSERT INTO "metrics" VALUES('client_written_kb_per_op','KiB/query','lower','sent to storage by the load generator per query');
INSERT INTO "metrics" VALUES('machine_reads_per_op','reads/query','lower','read requests of all disks per query');
INSERT INTO "metrics" VALUES('machine_read_kb_per_op','KiB/query','lower','read by all disks per query');
INSERT INTO "metrics" VALUES('machine_written_kb_per_op','KiB/query','lower','written by all disks per query');
INSERT INTO "metrics" VALUES('wal_bytes_per_op','bytes/query','lower','write-ahead or redo log written during the step per query');
INSERT INTO "metrics" VALUES('binlog_bytes_per_op','bytes/query','lower','binary log written during the step per query');
INSERT INTO "metrics" VALUES('companion_cpu_us_per_op','µs/query','lower','CPU time of pooler and consumers per query, which is not the server''s');
INSERT INTO "metrics" VALUES('server_instructions_per_op','instructions/query','lower','instructions in user code of all server processes per query in the rounds, where the machine has counters');
INSERT INTO "metrics" VALUES('instructions_per_op','instructions/query','lower','instructions of the client''s backend or connection thread per query, in user code, counted under callgrind for fixed work');
INSERT INTO "metrics" VALUES('wal_record_bytes_per_transaction','bytes/transaction','lower','WAL without images of pages written by fixed transactions of one client');
INSERT INTO "metrics" VALUES('wal_image_bytes_per_transaction','bytes/transaction','lower','images of pages in the WAL written by fixed transactions of one client');
INSERT INTO "metrics" VALUES('redo_bytes_per_transaction','bytes/transaction','lower','redo log written by fixed transactions of one client');
INSERT INTO "metrics" VALUES('binlog_bytes_per_transaction','bytes/transaction','lower','binary log written by fixed transactions of one client');
INSERT INTO "metrics" VALUES('log_syncs_per_commit','syncs/commit','neither','system calls that made the log durable, per commit that wrote, with full durability');
INSERT INTO "metrics" VALUES('pages_flushed_per_op','pages/query','lower','InnoDB pages written from the buffer pool per query');
INSERT INTO "metrics" VALUES('memory_growth_bytes_per_op','bytes/query','lower','growth of the private memory of all server processes per query, in the second half of the work');
INSERT INTO "metrics" VALUES('server_memory_bytes','bytes','lower','private memory of all server processes together in the second half of the work, without pages of the buffer pool: the median');
INSERT INTO "metrics" VALUES('buffer_pool_bytes','bytes','neither','memory of the buffer pool that pages have used since the start of the server');
INSERT INTO "metrics" VALUES('connection_kib','KiB/connection','lower','memory of the server per open connection, with page tables, without shared memory');
INSERT INTO "metrics" VALUES('connection_kib_low','KiB/connection','neither','lower end of that slope''s interval');
INSERT INTO "metrics" VALUES('connection_kib_high','KiB/connection','neither','upper end of that slope''s interval');
INSERT INTO "metrics" VALUES('connection_page_tables_kib','KiB/connection','lower','the page tables in it');
INSERT INTO "metrics" VALUES('connection_rss_kib','KiB/connection','lower','RSS of the server per open connection');
INSERT INTO "metrics" VALUES('connects_per_second','connects/s','higher','connections opened per second, many at once');
INSERT INTO "metrics" VALUES('connection_statements','statements','neither','prepared by each connection');
INSERT INTO "metrics" VALUES('debt_dead_tuples','tuples','lower','dead tuples, which vacuum had yet to remove');
INSERT INTO "metrics" VALUES('debt_history','transactions','lower','length of the history list, which InnoDB had yet to purge');
INSERT INTO "metrics" VALUES('reset_table_bytes_before','bytes','lower','tables without their indexes when the reset began');
INSERT INTO "metrics" VALUES('reset_index_bytes_before','bytes','lower','indexes when the reset began');
INSERT INTO "metrics" VALUES('reset_log_file_bytes_before','bytes','lower','files of the write-ahead or redo log when the reset began');
INSERT INTO "metrics" VALUES('reset_undo_bytes_before','bytes','lower','undo tablespaces and system tablespace when the reset began');
INSERT INTO "metrics" VALUES('reset_seconds','s','lower','the whole reset after the step');
INSERT INTO "metrics" VALUES('reset_vacuum_seconds','s','lower','VACUUM (ANALYZE) of all tables after the step');
INSERT INTO "metrics" VALUES('reset_checkpoint_seconds','s','lower','CHECKPOINT after the vacuum');
INSERT INTO "metrics" VALUES('reset_wal_bytes','bytes','lower','write-ahead or redo log written by the reset');
INSERT INTO "metrics" VALUES('reset_dead_tuples_before','tuples','neither','dead tuples when the reset began');
INSERT INTO "metrics" VALUES('reset_dead_tuples_after','tuples','lower','dead tuples that the reset could not remove');
INSERT INTO "metrics" VALUES('reset_dead_items','row versions','neither','row versions that the vacuum met and indexes referred to in vain');
INSERT INTO "metrics" VALUES('reset_dead_items_left','row versions','lower','those of them that the vacuum left, and in the indexes');
INSERT INTO "metrics" VALUES('reset_not_visible_share','ratio','lower','pages that the reset left without the mark of all-visible, which the next vacuum reads again');
INSERT INTO "metrics" VALUES('reset_not_frozen_share','ratio','lower','pages that the reset left without the mark of all-frozen, which a later vacuum must freeze');
INSERT INTO "metrics" VALUES('reset_purge_seconds','s','lower','waiting until InnoDB has purged old row versions');
INSERT INTO "metrics" VALUES('reset_flush_seconds','s','lower','waiting until InnoDB has written its dirty pages');
INSERT INTO "metrics" VALUES('reset_history_before','transactions','neither','length of the history list when the reset began');
INSERT INTO "metrics" VALUES('reset_history_after','transactions','lower','length of the history list that purge left');
INSERT INTO "metrics" VALUES('reset_history_left','transactions','lower','transactions whose old row versions purge did not remove in time; 0 if only as many are left as the reset accepts');
INSERT INTO "metrics" VALUES('reset_dirty_pages_before','pages','neither','dirty pages when the reset began');
INSERT INTO "metrics" VALUES('reset_dirty_pages_after','pages','lower','dirty pages that the reset left');
INSERT INTO "metrics" VALUES('reset_dirty_pages_left','pages','lower','pages that were not written in time; 0 if only as many are left as the reset accepts');
INSERT INTO "metrics" VALUES('table_bytes','bytes','lower','tables without their indexes after the reset');
INSERT INTO "metrics" VALUES('index_bytes','bytes','lower','indexes after the reset');
INSERT INTO "metrics" VALUES('log_file_bytes','bytes','lower','files of the write-ahead or redo log after the reset');
INSERT INTO "metrics" VALUES('undo_bytes','bytes','lower','undo tablespaces and system tablespace after the reset');
INSERT INTO "metrics" VALUES('companion_lag_bytes','bytes','lower','log of the server that its consumers had yet to get when the load ended');
INSERT INTO "metrics" VALUES('machine_steal_share','ratio','lower','wanted CPU time that the host of a virtual machine withheld');
INSERT INTO "metrics" VALUES('others_cpu_share','ratio','lower','CPU time of processes that are not ours, in cores');
INSERT INTO "metrics" VALUES('statement_seconds','s','lower','the one transaction of a timed step, such as building indexes');
INSERT INTO "metrics" VALUES('operation_ms','ms','lower','mean time of an operation, as other tools report it instead of a rate');
CREATE TABLE mutes (
    rule TEXT PRIMARY KEY,
    until TEXT NOT NULL,
    since TEXT NOT NULL,
    matched_at TEXT,
    told_at TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO "mutes" VALUES('steps x','2026-04-07','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL);
CREATE TABLE mutings (
    change_id INTEGER PRIMARY KEY REFERENCES changes (id),
    rule TEXT NOT NULL,
    reason TEXT NOT NULL,
    until TEXT NOT NULL,
    muted_at TEXT NOT NULL,
    ended_at TEXT,
    ended_why TEXT,
    is_outgrown INTEGER CHECK (is_outgrown IN (0, 1))
) STRICT;
INSERT INTO "mutings" VALUES(1,'steps x','it is known','2026-04-07','2026-03-08T02:00:00.000Z',NULL,NULL,NULL);
CREATE TABLE nights (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    version TEXT NOT NULL,
    build_id INTEGER REFERENCES builds (id),
    is_base INTEGER NOT NULL CHECK (is_base IN (0, 1)),
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    started_at TEXT NOT NULL,
    PRIMARY KEY (session_id, branch)
) STRICT, WITHOUT ROWID;
INSERT INTO "nights" VALUES(1,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-02T02:00:00.000Z');
INSERT INTO "nights" VALUES(1,'postgres@REL_18_STABLE','postgres@git:c0ffee123451',2,0,'db1','write-heavy','short relaxed 20s','2026-03-02T02:00:00.000Z');
INSERT INTO "nights" VALUES(2,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-03T02:00:00.000Z');
INSERT INTO "nights" VALUES(2,'postgres@REL_18_STABLE','postgres@git:c0ffee123452',3,0,'db1','write-heavy','short relaxed 20s','2026-03-03T02:00:00.000Z');
INSERT INTO "nights" VALUES(3,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-04T02:00:00.000Z');
INSERT INTO "nights" VALUES(3,'postgres@REL_18_STABLE','postgres@git:c0ffee123453',4,0,'db1','write-heavy','short relaxed 20s','2026-03-04T02:00:00.000Z');
INSERT INTO "nights" VALUES(4,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-05T02:00:00.000Z');
INSERT INTO "nights" VALUES(4,'postgres@REL_18_STABLE','postgres@git:c0ffee123454',5,0,'db1','write-heavy','short relaxed 20s','2026-03-05T02:00:00.000Z');
INSERT INTO "nights" VALUES(5,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-06T02:00:00.000Z');
INSERT INTO "nights" VALUES(5,'postgres@REL_18_STABLE','postgres@git:c0ffee123454',5,0,'db1','write-heavy','short relaxed 20s','2026-03-06T02:00:00.000Z');
INSERT INTO "nights" VALUES(6,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-07T02:00:00.000Z');
INSERT INTO "nights" VALUES(6,'postgres@REL_18_STABLE','postgres@git:c0ffee123454',5,0,'db1','write-heavy','short relaxed 20s','2026-03-07T02:00:00.000Z');
INSERT INTO "nights" VALUES(8,'postgres@17','postgres@17.11',1,1,'db1','write-heavy','short relaxed 20s','2026-03-08T02:00:00.000Z');
INSERT INTO "nights" VALUES(8,'postgres@REL_18_STABLE','postgres@git:c0ffee123454',5,0,'db1','write-heavy','short relaxed 20s','2026-03-08T02:00:00.000Z');
CREATE TABLE notices (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN (
        'new', 'returned', 'confirmed', 'fixed', 'trouble', 'over', 'digest', 'night'
    )),
    occasion TEXT NOT NULL,
    text TEXT NOT NULL,
    happened_at TEXT NOT NULL,
    waiting TEXT,
    UNIQUE (subject, number)
) STRICT;
INSERT INTO "notices" VALUES(1,'alert c0ffee01',1,'new','confirmed','insert is 7 % slower','2026-03-08T02:00:00.000Z',NULL);
INSERT INTO "notices" VALUES(2,'alert c0ffee01',2,'fixed','confirmed','insert is 7 % slower','2026-03-08T02:00:00.000Z','team');
CREATE TABLE placements (
    pool TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    branch TEXT NOT NULL,
    number INTEGER NOT NULL,
    box TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('new', 'joined', 'gone', 'plan')),
    placed_at TEXT NOT NULL,
    PRIMARY KEY (pool, suite, configuration, branch, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "placements" VALUES('fast','shop','short','postgres@REL_18_STABLE',1,'b','new','2026-03-08T02:00:00.000Z');
INSERT INTO "placements" VALUES('fast','tpcc','short','postgres@REL_18_STABLE',1,'a','new','2026-03-08T02:00:00.000Z');
CREATE TABLE points (
    series_id INTEGER NOT NULL REFERENCES series (id),
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    value REAL NOT NULL,
    PRIMARY KEY (series_id, session_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "points" VALUES(1,1,1.00118749804919150389e+03);
INSERT INTO "points" VALUES(1,2,1.00218749805113816365e+03);
INSERT INTO "points" VALUES(1,3,1.00318749805308061692e+03);
INSERT INTO "points" VALUES(1,4,1.00418749805501965961e+03);
INSERT INTO "points" VALUES(1,5,1.00512500000000034108e+03);
INSERT INTO "points" VALUES(1,6,1.00612499999999977266e+03);
INSERT INTO "points" VALUES(1,8,1.00712500000000011366e+03);
INSERT INTO "points" VALUES(2,1,9.98813910429859390643e+01);
INSERT INTO "points" VALUES(2,2,9.97817276651932161257e+01);
INSERT INTO "points" VALUES(2,3,9.968226298082197445e+01);
INSERT INTO "points" VALUES(2,4,9.95829963962775792634e+01);
INSERT INTO "points" VALUES(2,5,9.94901131700037097936e+01);
INSERT INTO "points" VALUES(2,6,9.93912287240651437514e+01);
INSERT INTO "points" VALUES(2,8,9.92925406478838397123e+01);
INSERT INTO "points" VALUES(3,1,9.31187497902543668756e+02);
INSERT INTO "points" VALUES(3,2,9.32187497904793644937e+02);
INSERT INTO "points" VALUES(3,3,933.187497907039);
INSERT INTO "points" VALUES(3,4,934.187497909279);
INSERT INTO "points" VALUES(3,5,935.125);
INSERT INTO "points" VALUES(3,6,9.36125000000000227415e+02);
INSERT INTO "points" VALUES(3,8,9.37124999999999886302e+02);
INSERT INTO "points" VALUES(4,1,1.07389757943749515329e+02);
INSERT INTO "points" VALUES(4,2,1.07274556057405035859e+02);
INSERT INTO "points" VALUES(4,3,1.07159601070825416968e+02);
INSERT INTO "points" VALUES(4,4,1.0704489219112964804e+02);
INSERT INTO "points" VALUES(4,5,1.06937575190482576199e+02);
INSERT INTO "points" VALUES(4,6,1.06823340899986632737e+02);
INSERT INTO "points" VALUES(4,8,1.06709350406829429403e+02);
INSERT INTO "points" VALUES(5,1,1.00118749804919150389e+03);
INSERT INTO "points" VALUES(5,2,1.00218749805113816365e+03);
INSERT INTO "points" VALUES(5,3,1.00318749805308061692e+03);
INSERT INTO "points" VALUES(5,4,1.00418749805501965961e+03);
INSERT INTO "points" VALUES(5,5,1.00512500000000034108e+03);
INSERT INTO "points" VALUES(5,6,1.00612499999999977266e+03);
INSERT INTO "points" VALUES(5,8,1.00712500000000011366e+03);
INSERT INTO "points" VALUES(6,1,9.98813910429859390643e+01);
INSERT INTO "points" VALUES(6,2,9.97817276651932161257e+01);
INSERT INTO "points" VALUES(6,3,9.968226298082197445e+01);
INSERT INTO "points" VALUES(6,4,9.95829963962775792634e+01);
INSERT INTO "points" VALUES(6,5,9.94901131700037097936e+01);
INSERT INTO "points" VALUES(6,6,9.93912287240651437514e+01);
INSERT INTO "points" VALUES(6,8,9.92925406478838397123e+01);
INSERT INTO "points" VALUES(7,1,9.31187497902543668756e+02);
INSERT INTO "points" VALUES(7,3,933.187497907039);
INSERT INTO "points" VALUES(7,4,934.187497909279);
INSERT INTO "points" VALUES(7,5,935.125);
INSERT INTO "points" VALUES(7,6,9.36125000000000227415e+02);
INSERT INTO "points" VALUES(7,8,9.37124999999999886302e+02);
INSERT INTO "points" VALUES(8,1,1.07389757943749515329e+02);
INSERT INTO "points" VALUES(8,3,1.07159601070825416968e+02);
INSERT INTO "points" VALUES(8,4,1.0704489219112964804e+02);
INSERT INTO "points" VALUES(8,5,1.06937575190482576199e+02);
INSERT INTO "points" VALUES(8,6,1.06823340899986632737e+02);
INSERT INTO "points" VALUES(8,8,1.06709350406829429403e+02);
CREATE TABLE pool_boxes (
    pool TEXT NOT NULL,
    box TEXT NOT NULL,
    hostname TEXT,
    seen_at TEXT NOT NULL,
    missed INTEGER NOT NULL,
    missed_at TEXT,
    left_at TEXT,
    PRIMARY KEY (pool, box)
) STRICT, WITHOUT ROWID;
INSERT INTO "pool_boxes" VALUES('fast','a','host-a','2026-03-08T02:00:00.000Z',0,NULL,NULL);
INSERT INTO "pool_boxes" VALUES('fast','b','host-b','2026-03-08T02:00:00.000Z',0,NULL,NULL);
CREATE TABLE profiles (
    run_id INTEGER PRIMARY KEY REFERENCES runs (id),
    event TEXT NOT NULL,
    frequency REAL NOT NULL CHECK (frequency > 0),
    queries REAL NOT NULL CHECK (queries > 0),
    lost INTEGER NOT NULL CHECK (lost >= 0),
    stacks BLOB NOT NULL
) STRICT;
INSERT INTO "profiles" VALUES(17,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(18,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(19,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(20,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(21,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(22,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(23,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
INSERT INTO "profiles" VALUES(24,'cpu-clock',1000.0,5000.0,1,X'78DAAB564ACEC94CCD2B51484A4CCE4ECD4BB1CE4DCCCCB38EF0C94FF7CC2B4E2D2A51B23236D0C1AA262335B120BEB42025B12455C9CA04A8A83C31A7BC28B324B5082CAF64655A0B001AE920FB');
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    build_id INTEGER NOT NULL REFERENCES builds (id),
    version TEXT NOT NULL,
    configuration_id INTEGER REFERENCES configurations (id),
    step TEXT NOT NULL,
    step_position INTEGER NOT NULL,
    repetition INTEGER NOT NULL CHECK (repetition >= 1),
    position INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('finished', 'failed', 'interrupted')),
    failure TEXT,
    warnings TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    UNIQUE (session_id, version, step, repetition)
) STRICT;
INSERT INTO "runs" VALUES(1,1,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(2,1,2,'postgres@git:c0ffee123451',2,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(3,1,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(4,1,2,'postgres@git:c0ffee123451',2,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(5,1,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(6,1,2,'postgres@git:c0ffee123451',2,'insert',2,1,6,'finished',NULL,'[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(7,1,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(8,1,2,'postgres@git:c0ffee123451',2,'insert',2,2,8,'finished',NULL,'[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(9,2,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(10,2,3,'postgres@git:c0ffee123452',3,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(11,2,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(12,2,3,'postgres@git:c0ffee123452',3,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(13,2,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(14,2,3,'postgres@git:c0ffee123452',3,'insert',2,1,6,'failed','the server did not start','[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:00.000Z');
INSERT INTO "runs" VALUES(15,2,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(16,2,3,'postgres@git:c0ffee123452',3,'insert',2,2,8,'failed','the server did not start','[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:00.000Z');
INSERT INTO "runs" VALUES(17,3,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(18,3,4,'postgres@git:c0ffee123453',4,'update-index',1,1,2,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(19,3,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(20,3,4,'postgres@git:c0ffee123453',4,'update-index',1,2,4,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(21,3,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(22,3,4,'postgres@git:c0ffee123453',4,'insert',2,1,6,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(23,3,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(24,3,4,'postgres@git:c0ffee123453',4,'insert',2,2,8,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(25,4,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(26,4,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(27,4,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(28,4,5,'postgres@git:c0ffee123454',5,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(29,4,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(30,4,5,'postgres@git:c0ffee123454',5,'insert',2,1,6,'finished',NULL,'[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(31,4,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(32,4,5,'postgres@git:c0ffee123454',5,'insert',2,2,8,'finished',NULL,'[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(33,5,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(34,5,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(35,5,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(36,5,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(37,6,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(38,6,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(39,6,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(40,6,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(41,7,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(42,7,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(43,7,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(44,7,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(45,8,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(46,8,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(47,8,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(48,8,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(49,9,2,'postgres@git:c0ffee123451',2,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(50,9,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(51,9,2,'postgres@git:c0ffee123451',2,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(52,9,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(53,10,4,'postgres@git:c0ffee123453',4,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(54,10,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(55,10,4,'postgres@git:c0ffee123453',4,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(56,10,5,'postgres@git:c0ffee123454',5,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(57,10,4,'postgres@git:c0ffee123453',4,'update-index',1,3,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(58,10,5,'postgres@git:c0ffee123454',5,'update-index',1,3,6,'finished',NULL,'[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(59,10,4,'postgres@git:c0ffee123453',4,'update-index',1,4,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(60,10,5,'postgres@git:c0ffee123454',5,'update-index',1,4,8,'finished',NULL,'[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(61,10,4,'postgres@git:c0ffee123453',4,'update-index',1,5,9,'finished',NULL,'[]','2026-03-01T02:09:00.000Z','2026-03-01T02:09:30.000Z');
INSERT INTO "runs" VALUES(62,10,5,'postgres@git:c0ffee123454',5,'update-index',1,5,10,'finished',NULL,'[]','2026-03-01T02:10:00.000Z','2026-03-01T02:10:30.000Z');
INSERT INTO "runs" VALUES(63,10,4,'postgres@git:c0ffee123453',4,'insert',2,1,11,'finished',NULL,'[]','2026-03-01T02:11:00.000Z','2026-03-01T02:11:30.000Z');
INSERT INTO "runs" VALUES(64,10,5,'postgres@git:c0ffee123454',5,'insert',2,1,12,'finished',NULL,'[]','2026-03-01T02:12:00.000Z','2026-03-01T02:12:30.000Z');
INSERT INTO "runs" VALUES(65,10,4,'postgres@git:c0ffee123453',4,'insert',2,2,13,'finished',NULL,'[]','2026-03-01T02:13:00.000Z','2026-03-01T02:13:30.000Z');
INSERT INTO "runs" VALUES(66,10,5,'postgres@git:c0ffee123454',5,'insert',2,2,14,'finished',NULL,'[]','2026-03-01T02:14:00.000Z','2026-03-01T02:14:30.000Z');
INSERT INTO "runs" VALUES(67,10,4,'postgres@git:c0ffee123453',4,'insert',2,3,15,'finished',NULL,'[]','2026-03-01T02:15:00.000Z','2026-03-01T02:15:30.000Z');
INSERT INTO "runs" VALUES(68,10,5,'postgres@git:c0ffee123454',5,'insert',2,3,16,'finished',NULL,'[]','2026-03-01T02:16:00.000Z','2026-03-01T02:16:30.000Z');
INSERT INTO "runs" VALUES(69,10,4,'postgres@git:c0ffee123453',4,'insert',2,4,17,'finished',NULL,'[]','2026-03-01T02:17:00.000Z','2026-03-01T02:17:30.000Z');
INSERT INTO "runs" VALUES(70,10,5,'postgres@git:c0ffee123454',5,'insert',2,4,18,'finished',NULL,'[]','2026-03-01T02:18:00.000Z','2026-03-01T02:18:30.000Z');
INSERT INTO "runs" VALUES(71,10,4,'postgres@git:c0ffee123453',4,'insert',2,5,19,'finished',NULL,'[]','2026-03-01T02:19:00.000Z','2026-03-01T02:19:30.000Z');
INSERT INTO "runs" VALUES(72,10,5,'postgres@git:c0ffee123454',5,'insert',2,5,20,'finished',NULL,'[]','2026-03-01T02:20:00.000Z','2026-03-01T02:20:30.000Z');
CREATE TABLE samples (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    second INTEGER NOT NULL CHECK (second >= 1),
    qps REAL NOT NULL,
    PRIMARY KEY (run_id, second)
) STRICT, WITHOUT ROWID;
INSERT INTO "samples" VALUES(1,1,1000.125);
INSERT INTO "samples" VALUES(1,2,1002.125);
INSERT INTO "samples" VALUES(2,1,930.125);
INSERT INTO "samples" VALUES(2,2,932.125);
INSERT INTO "samples" VALUES(3,1,1000.25);
INSERT INTO "samples" VALUES(3,2,1002.25);
INSERT INTO "samples" VALUES(4,1,930.25);
INSERT INTO "samples" VALUES(4,2,932.25);
INSERT INTO "samples" VALUES(5,1,1000.125);
INSERT INTO "samples" VALUES(5,2,1002.125);
INSERT INTO "samples" VALUES(6,1,930.125);
INSERT INTO "samples" VALUES(6,2,932.125);
INSERT INTO "samples" VALUES(7,1,1000.25);
INSERT INTO "samples" VALUES(7,2,1002.25);
INSERT INTO "samples" VALUES(8,1,930.25);
INSERT INTO "samples" VALUES(8,2,932.25);
CREATE TABLE schema_migrations (
    number INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;
INSERT INTO "schema_migrations" VALUES(1,'history','2026-11-30T20:54:59.622Z');
INSERT INTO "schema_migrations" VALUES(2,'rounds','2026-11-30T20:54:59.626Z');
INSERT INTO "schema_migrations" VALUES(3,'profiles','2026-11-30T20:54:59.627Z');
INSERT INTO "schema_migrations" VALUES(4,'series','2026-11-30T20:54:59.629Z');
INSERT INTO "schema_migrations" VALUES(5,'alerts','2026-11-30T20:54:59.631Z');
INSERT INTO "schema_migrations" VALUES(6,'bisect','2026-11-30T20:54:59.632Z');
INSERT INTO "schema_migrations" VALUES(7,'confirmed','2026-11-30T20:54:59.634Z');
INSERT INTO "schema_migrations" VALUES(8,'alert_intent','2026-11-30T20:54:59.638Z');
INSERT INTO "schema_migrations" VALUES(9,'counted','2026-11-30T20:54:59.639Z');
INSERT INTO "schema_migrations" VALUES(10,'kinds','2026-11-30T20:54:59.641Z');
INSERT INTO "schema_migrations" VALUES(11,'pools','2026-11-30T20:54:59.643Z');
INSERT INTO "schema_migrations" VALUES(12,'issues','2026-11-30T20:54:59.648Z');
INSERT INTO "schema_migrations" VALUES(13,'task_states','2026-11-30T20:54:59.649Z');
INSERT INTO "schema_migrations" VALUES(14,'imported_base','2026-11-30T20:54:59.651Z');
INSERT INTO "schema_migrations" VALUES(15,'wait_profiles','2026-11-30T20:54:59.652Z');
INSERT INTO "schema_migrations" VALUES(16,'activities','2026-11-30T20:54:59.653Z');
INSERT INTO "schema_migrations" VALUES(17,'notices','2026-11-30T20:54:59.655Z');
INSERT INTO "schema_migrations" VALUES(18,'owners','2026-11-30T20:54:59.658Z');
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    branch TEXT NOT NULL,
    step TEXT NOT NULL,
    metric TEXT NOT NULL REFERENCES metrics (name),
    step_position INTEGER NOT NULL,
    UNIQUE (box, suite, configuration, branch, step, metric)
) STRICT;
INSERT INTO "series" VALUES(1,'db1','write-heavy','short relaxed 20s','postgres@17','update-index','qps',1);
INSERT INTO "series" VALUES(2,'db1','write-heavy','short relaxed 20s','postgres@17','update-index','server_cpu_us_per_op',1);
INSERT INTO "series" VALUES(3,'db1','write-heavy','short relaxed 20s','postgres@REL_18_STABLE','update-index','qps',1);
INSERT INTO "series" VALUES(4,'db1','write-heavy','short relaxed 20s','postgres@REL_18_STABLE','update-index','server_cpu_us_per_op',1);
INSERT INTO "series" VALUES(5,'db1','write-heavy','short relaxed 20s','postgres@17','insert','qps',2);
INSERT INTO "series" VALUES(6,'db1','write-heavy','short relaxed 20s','postgres@17','insert','server_cpu_us_per_op',2);
INSERT INTO "series" VALUES(7,'db1','write-heavy','short relaxed 20s','postgres@REL_18_STABLE','insert','qps',2);
INSERT INTO "series" VALUES(8,'db1','write-heavy','short relaxed 20s','postgres@REL_18_STABLE','insert','server_cpu_us_per_op',2);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    machine_id INTEGER NOT NULL REFERENCES machines (id),
    suite TEXT NOT NULL,
    profile TEXT NOT NULL,
    suite_digest TEXT NOT NULL,
    seed INTEGER NOT NULL,
    durability TEXT NOT NULL,
    repetitions INTEGER NOT NULL CHECK (repetitions >= 1),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'finished', 'interrupted', 'failed')),
    command TEXT NOT NULL,
    tools TEXT NOT NULL,
    options TEXT NOT NULL,
    process_id INTEGER NOT NULL,
    process_start_ticks INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    CHECK ((status = 'running') = (ended_at IS NULL))
) STRICT;
INSERT INTO "sessions" VALUES(1,'night-1',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-02T02:00:00.000Z','2026-03-02T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123451":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123451"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(2,'night-2',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-03T02:00:00.000Z','2026-03-03T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123452":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123452"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(3,'night-3',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-04T02:00:00.000Z','2026-03-04T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123453":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123453"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(4,'night-4',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-05T02:00:00.000Z','2026-03-05T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(5,'night-5',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-06T02:00:00.000Z','2026-03-06T02:00:00.000Z','interrupted','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(6,'night-6',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-07T02:00:00.000Z','2026-03-07T02:00:00.000Z','failed','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(7,'under-way',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-08T02:00:00.000Z',NULL,'running','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(8,'calibration',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(9,'searching',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"bisect":"b1","branches":{},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@git:c0ffee123451","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
INSERT INTO "sessions" VALUES(10,'confirming',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',5,'2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{},"confirms":{"before":"night-3","branch":"postgres@REL_18_STABLE","change":"","night":"night-4","question":"new","steps":["update-index"],"threshold":0.02},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@git:c0ffee123453","postgres@git:c0ffee123454"]}',15257,1620253,'a9fb3d99-739b-4548-975c-527d5819b778');
CREATE TABLE task_states (
    box TEXT NOT NULL,
    suite TEXT NOT NULL,
    configuration TEXT NOT NULL,
    tracked TEXT NOT NULL,
    hostname TEXT NOT NULL,
    version TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN (
        'pending', 'measured', 'disturbed', 'current', 'budget', 'unreachable', 'unavailable', 'unusable',
        'failed', 'stopped', 'busy', 'paused'
    )),
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    fetched_at TEXT,
    PRIMARY KEY (box, suite, configuration, tracked)
) STRICT, WITHOUT ROWID;
INSERT INTO "task_states" VALUES('db1','write-heavy','short','postgres@17.11','db1',NULL,'current','','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL);
INSERT INTO "task_states" VALUES('db1','write-heavy','short','postgres@REL_18_STABLE','db1',NULL,'unreachable','','2026-03-08T02:00:00.000Z','2026-03-08T02:00:00.000Z',NULL);
CREATE TABLE wait_profiles (
    run_id INTEGER PRIMARY KEY REFERENCES runs (id),
    frequency REAL NOT NULL CHECK (frequency > 0),
    queries REAL NOT NULL CHECK (queries > 0),
    stacks BLOB NOT NULL
) STRICT;
INSERT INTO "wait_profiles" VALUES(17,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(18,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(19,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(20,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(21,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(22,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(23,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
INSERT INTO "wait_profiles" VALUES(24,10.0,5000.0,X'78DAAB562A4FCC2CC9CC4BB7F609F7C94FCEB60A77F4F1CC2B4E2D2A51B23234D2512ACF2FCA06C93A07842A59191B18D40200A9701028');
CREATE INDEX sessions_by_start ON sessions (started_at);
CREATE INDEX runs_by_version ON runs (version, session_id);
CREATE VIEW relative_qps AS
SELECT
    base.session_id AS session_id,
    base.step AS step,
    base.repetition AS repetition,
    base.version AS base_version,
    contender.version AS contender_version,
    base_qps.value AS base_qps,
    contender_qps.value AS contender_qps,
    contender_qps.value / NULLIF(base_qps.value, 0) AS relative_qps
FROM runs AS base
JOIN runs AS contender
    ON contender.session_id = base.session_id
    AND contender.step = base.step
    AND contender.repetition = base.repetition
    AND contender.version <> base.version
JOIN measurements AS base_qps ON base_qps.run_id = base.id AND base_qps.metric = 'qps'
JOIN measurements AS contender_qps ON contender_qps.run_id = contender.id AND contender_qps.metric = 'qps'
WHERE base.status = 'finished' AND contender.status = 'finished';
CREATE INDEX dropped_rounds_by_session ON dropped_rounds (session_id);
CREATE INDEX nights_in_order
ON nights (box, suite, configuration, branch, started_at, session_id, version, build_id);
CREATE INDEX nights_by_version ON nights (version, started_at);
CREATE INDEX nights_by_branch ON nights (branch, started_at);
CREATE INDEX sessions_by_status ON sessions (status, started_at);
CREATE INDEX calibrations_by_metric ON calibrations (metric, session_id);
CREATE INDEX bisect_events_by_session ON bisect_events (session_uid);
CREATE INDEX confirmations_by_series ON confirmations (series_id);
COMMIT;
