// The page of a study: its tables and the switch between dark and light; figures are pictures.

prepareTables();
startPage(() => {});
next(() => {});
